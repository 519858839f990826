// Package stack starts the three processes of Tarry on one machine and keeps an eye on them: a Temporal dev server, a
// worker and an HTTP server, each a process of its own with its own log, all on loopback ports that stay the same
// across restarts.
//
// It owns processes: environment, readiness, ends (asked for or not), and that nothing is left behind. It knows no
// protocol but the line "ready ADDRESS" that each process prints, and it must not read the environment: what children
// get is stated in [Config]. Commands (dev, demo) and the end-to-end tests use it.
package stack
