// Package store is SQL for everyone who keeps something: the session log, requests, flows, grants, the outbox, published
// definitions and the audit table.
//
// It implements interfaces that others declare (session.Log, oauth.Store, outbox.Store, …) over one database, because
// what must happen together is one transaction here: a token, the requests it answers, the messages that wake their runs
// and the audit rows. One SQL text serves SQLite and PostgreSQL; what differs is in a dialect file each. It must not know
// Temporal or HTTP, and it never sees a secret: sensitive columns hold ciphertext.
package store
