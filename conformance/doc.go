// Command conformance runs the MCP conformance suite against the service as it runs: dev server, worker and server are
// processes of their own, and the client that the suite starts only steers them over HTTP. `make conformance` builds
// what it needs.
//
// It owns which scenarios run and how they are counted, what agent is written for each, and when the worker is killed.
// It must not open a connection to a scenario's server: only the worker and the server do, since they are what is tested.
//
// # Two roles
//
// Without arguments it asks the suite what each revision requires, starts the service once, and starts one suite process
// a scenario, several at a time. Each suite process starts this program again, as "conformance client URL", and that
// client writes an agent for the URL, starts a run, opens the links that the run waits with and fills in their forms as a
// browser does, and turns the end of the run into an exit status.
//
// # Restarts of the worker
//
// Scenarios that run at the same time form a round and meet in a [barrier]. They meet first when all agents are written:
// the worker starts and publishes them. They meet again when each run has ended or waits for a person: the worker is
// killed, the persons answer while no worker lives, and the worker is started for what comes next.
package main
