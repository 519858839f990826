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
// notifications of a cancelled call. They carry the last accepted token and do not ask a broker: a refusal ends them. There
// is no standalone event stream.
//
// # How a call fails
//
//   - [*auth.RequiredError]: a person must log in. The call did not run.
//   - [*tools.Error]: for the model. It holds no text from a body of a 401 or 403.
//   - An error that wraps [tools.ErrNotExecuted]: nothing reached a tool, try again.
//   - An error that wraps [tools.ErrUnknown]: the request was sent and nobody knows more.
//   - The context's error when the caller cancelled; the server is told.
//
// A result with isError is a result.
package mcp
