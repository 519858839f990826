// Package stream follows a session's log for a client that reads along: each event once, until there is nothing to wait
// for, and as server-sent events with ids to resume from.
//
// It owns when a stream ends: the invocation has ended, every branch of it waits for a person, or the session is closed.
// It reads the log and nothing else, so it needs no worker and no workflow, and a reader that goes away stops nothing. It
// must not write, and it must not know what clients do with the events. Packages adk and runs call it.
package stream
