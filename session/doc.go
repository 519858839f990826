// Package session owns what was said: events in ADK's JSON shape, the append-only log they form, the view of it that a
// model gets, and the state that is folded from it.
//
// Events are immutable and form a DAG by their parents, like commits. A workflow knows heads, the ids that its next event
// will have as parents; a view is all ancestors of the heads in order of arrival, so it does not change when another
// branch appends. Nothing here knows Temporal: ids, run ids and workflow ids are strings. The package declares [Log], the
// interface that package store implements; activities append through it and the server reads from it.
package session
