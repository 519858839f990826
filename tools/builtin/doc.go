// Package builtin holds the tools that Tarry brings: exit_loop, request_input, load_artifacts and load_memory.
//
// A definition names them as builtin, and a worker's registry holds them next to its own Go tools. A builtin tool steers
// the run through the fields of [tools.Result]; it must not know how an agent acts on them.
package builtin
