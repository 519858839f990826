// Package agent says what an agent is: its [Definition] (what an author wrote), its [Plan] (the structure that a workflow
// decides by, without prompts), validation and the hash that pins a run to what it was started with.
//
// It owns the names that everybody else uses for an agent's parts, the [Owner] that every stored thing belongs to, and
// the reserved tool names. It must not do I/O, read a clock or know Temporal, HTTP or SQL: workflow code imports it, so
// everything here is a pure function of its input. Every other package may call it; agent/yaml fills its types from
// files, and applications fill them from Go.
package agent
