// Package callbacks is the vocabulary of callbacks: Go functions of an application that run around model and tool calls, and
// that agents name as ADK's agents do ([Set], [Context]).
//
// A callback runs in the activity of the call that it belongs to. It must not know Temporal, the store or HTTP routes.
package callbacks
