// Package adk is ADK's HTTP API, so that clients written for Google's Agent Development Kit and its web UI work unchanged.
//
// It owns the translation: names in camelCase or snake_case come in, events go out byte for byte as they were stored. A
// message becomes an inbox row and the answer is read from the log; the handler that did so may go away, the run does not
// notice. Replies to login requests are checked and dropped here: whatever a client sends back grants nothing and changes
// nothing. It must not know Temporal, cookies or credentials. Package server wires it.
package adk
