// Package adkweb drives the ADK web UI, as it is published, in Chromium against real processes: the UI's own server is ours, and so
// is everything that it calls. It has tests only, behind the build tag "adkweb"; `make adkweb` fetches the UI's build from npm, runs
// them and keeps screenshots of every step.
//
// It must not know how the UI works inside: it clicks, types and reads as a person does. What a request of the UI looks like is
// written down in package server/adk.
package adkweb
