// Command devserver runs a Temporal server in one process on a loopback address, for development and tests. State is
// one SQLite file, or memory when no file is named.
//
// It owns that file, its lock and the namespace in it. It must not be reachable from another machine, has no web
// interface, and makes no network call of its own. Tarry's command line and its end-to-end tests start it as a child
// process and wait for the line "ready HOST:PORT" on standard output; logs go to standard error.
//
// It is a module of its own because a Temporal server and a current Temporal SDK cannot share one module.
//
// Exit status: 0 after SIGTERM or SIGINT, 1 when it cannot start or breaks down, 2 for wrong arguments.
package main
