// Package tarry runs LLM agents as Temporal workflows: when a tool needs a person's login, the run asks for it, waits as
// long as it takes with nothing running, and goes on the moment the login is there.
//
// This package is the way in for applications: an [App] holds their agents, tools and models, and [NewWorker] makes of it
// a worker that any number of processes may run. Package server is the HTTP side. It owns wiring and nothing else: what
// an agent is lies in package agent, what a tool is in package tools, and so on.
package tarry
