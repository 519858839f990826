// Package engine is the Temporal side for callers: it starts and signals sessions, asks them for their status, reads
// their histories and prepares a namespace.
//
// It reaches workflows by their wire names and imports none of them, so that the server needs no worker code. It must not
// decide anything: what is sent was stored before, and package outbox says when. The server uses it; cmd dials the client
// that it works with.
package engine
