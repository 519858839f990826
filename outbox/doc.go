// Package outbox carries messages to workflows that must arrive.
//
// Whoever changes the store so that a run must hear of it (a login was granted, a message came in) writes a row in the
// same transaction; the [Dispatcher] delivers rows, at least once, until the run has acted on them. It knows rows and a
// function that delivers one; it must not know Temporal (package engine delivers) or what the messages mean. The server
// runs a dispatcher; store implements [Store].
package outbox
