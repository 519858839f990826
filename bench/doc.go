// Command bench measures what the agent loop costs in history and in time, beside a bare Temporal workflow that runs the
// same activities. `make bench` builds what it needs, prints a table and writes bench/results.json.
//
// It owns the definitions below and what counts as met. It must not reach into a session: runs are started over HTTP and
// measured by their histories, as Temporal keeps them.
//
// # What runs
//
// A dev server and an HTTP server as they ship, and two workers, each a process of this program: one is Tarry's (package
// tarry, as in any worker of one's own) with a scripted model and a Go function as the tool; the other runs the bare
// workflow. The tool is a function and no MCP server, since a request over HTTP would be in Tarry's time alone and says
// nothing about the loop. It answers with 2 KB, which go into Tarry's store and not into history.
//
// The bare workflow calls two activities a turn with the options, names, summaries and payload sizes of Tarry's model and
// tool calls; the sizes are read off a history of Tarry's, made first. Its activities return at once and write nothing.
// Its worker has the same options, on the same server. Runs of both alternate, first one first and then the other, so that
// a busy machine hits both alike. Nothing is compressed on the way to Temporal, for either. 500 turns of each come before those that count.
//
// A thousand turns are more model calls than one invocation may make: they are four messages to one session.
//
// # What is measured
//
// A turn is a model call that calls a tool, the tool call, and the workflow tasks after both: the events from one
// scheduled model call up to, and without, the next. Turns across which a run continues as new, or in which the server
// repeated a workflow task, are left out of the counts, and their number is printed.
//
//   - events_per_turn, bytes_per_turn: means over the turns of the session; bytes are those of the events as protobuf.
//   - step_ms_p50: the median, over the turns of all runs, of the time from one scheduled model call to the next, by the
//     timestamps of the server. bare_step_ms_p50 is the same of the bare workflow.
//
// A count over its target ends the program with status 1. A time never does: it depends on the machine.
package main
