// Package trace makes spans of a session's log, as ADK's web UI reads them: for each invocation one of itself, of each agent's
// turn, of each model and tool call, and of each wait for a person.
//
// It owns what a span says of an event: names, times, and attributes of OpenTelemetry and ADK. All of it comes from events and
// requests that the session's owner can read as they are, so that a trace tells nothing more; nothing is recorded for it. What one
// answer holds is bounded, newest first. It must not read anything itself. Package adk calls it.
package trace
