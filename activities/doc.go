// Package activities does what the session workflow decides: takes messages, lists tools, calls models and tools, asks
// people, and writes how things ended.
//
// Every activity is idempotent by event id: ids are derived from run and activity, so that a retried attempt finds what
// an earlier one stored and returns it (invariant I6). Inputs and results are ids; content is read from and written to the
// session log. What an activity returns as an error stands in the workflow's history: errors.go is the only place that
// makes such errors, from a fixed vocabulary. The package knows the vocabularies (tools, models, auth, session) and no
// machinery: the root package wires that in. It must not steer workflows.
package activities
