// Package replay runs recorded histories against today's workflow code and says where they differ.
//
// It needs neither a store nor a server: a history holds ids and names only. Beyond what the SDK's replayer checks (kinds
// and order of commands) it compares the inputs of activities, which the SDK does not. It must not touch a store. The
// command line, the project's own fixtures and users' tests call it.
package replay
