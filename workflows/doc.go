// Package workflows decides: the session workflow, one file per agent kind, and the wait for a person.
//
//	          message                 every branch waits
//	idle ───────────────▶ running ───────────────────────▶ waiting
//	 ▲                    │    ▲                              │
//	 └── invocation ends ─┘    └── granted, denied, expired ──┘
//
// Its code is deterministic: no I/O, no clock, no goroutine but [workflow.Go], no content and no secret. What it holds is
// the order of things; what was said lies in the session log, and it passes ids. Activities are called in calls.go and
// nowhere else. A change of the command sequence needs a change id and a new replay fixture.
//
// Workers register [Session]; package replay runs it against recorded histories. It imports wire and agent only.
package workflows
