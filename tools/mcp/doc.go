// Package mcp serves the tools of MCP servers. It is an MCP client around github.com/modelcontextprotocol/go-sdk.
//
// It owns the connections: one for each owner and server definition, opened by the first activity that needs it, reused by
// later ones, closed when idle and by [Opener.Close]. Two users never share one. It must not know how a credential is
// obtained: each call brings its own [auth.Broker], and nothing of a call outlives it in a connection but the last token
// that the server accepted, which takes leave of the server's session.
//
// # How a request finds its token
//
// A connection is shared by concurrent calls, a broker belongs to one. So a call is an attempt that travels in the context
// of its requests, and the round tripper of the connection asks the attempt's broker before each request. A 401, or a 403
// with insufficient_scope, is told to the broker there and then; if it has a fresh token, the request is repeated once. What
// the broker said is kept in the attempt and read from there, not from the error that go-sdk returns: go-sdk answers a
// refused server/discover with initialize, and would ask twice and return the second error.
//
// Requests that belong to no running call are the DELETE at the end of a session, answers to a server's ping and
// notifications of a cancelled call. They carry the last accepted token and do not ask a broker: a refusal ends them.
//
// Nothing is heard between calls: tools are listed once for each invocation, so list_changed would change nothing, and
// neither the standing stream of revision 2025-11-25 nor subscriptions/listen is opened. The one exception is a toolset with
// accept_defaults, since some servers ask their questions there.
//
// # What a server wants of a person
//
// Two ways to ask are durable, because the server gets its answer with a repeated call: error -32042 (URL mode, revision
// 2025-11-25) and an input-required result (URL and form mode, revision 2026-07-28). Both end the call with a
// [*tools.InputRequiredError]; URLs are judged by scheme and host and never fetched. An elicitation/create inside a call
// waits in a live session and cannot be: it is cancelled, or, with accept_defaults, filled in from its schema or declined.
// Hence what is offered: URL mode always, forms always to servers of revision 2026-07-28 (whose requests say so one by one),
// and to older ones only with accept_defaults. A defaulted form needs nobody on either.
//
// # How long a call takes
//
// As long as the server goes on saying something: each byte of its answer, and each notifications/progress for the call,
// starts the read timeout anew. A broker's time does not count. An answer that is none ends the call at once: a 202, a
// stream without a response, a response to something else. The body of a refusal is read for two seconds.
//
// # How a call fails
//
//   - [*auth.RequiredError]: a person must log in. The call did not run.
//   - [*tools.InputRequiredError]: the server wants something else of a person. It wants to be called again.
//   - [*tools.Error]: for the model. It holds no text from a body of a 401 or 403.
//   - An error that wraps [tools.ErrNotExecuted]: nothing reached a tool, try again.
//   - An error that wraps [tools.ErrUnknown]: the request was sent and nobody knows more.
//   - The context's error when the caller cancelled; the server is told.
//
// A result with isError is a result.
package mcp
