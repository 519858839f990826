package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"tarry/auth"
	"tarry/internal/safehttp"
	"tarry/tools"
)

// ErrClosed is returned by an [Opener] after Close.
var ErrClosed = errors.New("mcp: closed")

var (
	errSilent        = errors.New("no answer in time")
	errNoAnswer      = errors.New("no answer")
	errTooLarge      = errors.New("answer is too large")
	errBusy          = errors.New("the server is busy")
	errSessionGone   = errors.New("session is gone")
	errOtherOrigin   = errors.New("the server names an address of another origin")
	errNoBroker      = errors.New("the server wants a login and none can be made here")
	errStaticRefused = errors.New("the server refused the credentials in the definition's headers")
	errRefusedAgain  = errors.New("the server refused a token that its authorization server had just issued")
)

// maxText is the most bytes of a server's words in an error.
const maxText = 2 << 10

// rejectedError tells go-sdk that one request failed and not the connection, which other calls use.
type rejectedError struct{ err error }

func (e *rejectedError) Error() string { return e.err.Error() }

// Unwrap returns the reason, and what go-sdk's transports take for a rejected request.
func (e *rejectedError) Unwrap() []error {
	return []error{e.err, &jsonrpc.Error{Code: codeRejected, Message: rejected}}
}

// The error by which go-sdk knows a request that was rejected before it was sent. Its type is internal; errors.Is compares
// the code.
const (
	codeRejected = -32005
	rejected     = "rejected by transport"
)

// statusError is an HTTP status that is no answer.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP %d %s", e.code, http.StatusText(e.code)))
}

// failure says what an attempt's end means; what names the server's tool. stale says that nothing was executed and that a
// new session may well work.
func (t *toolset) failure(a *attempt, s *session, what string, err error) (stale bool, _ error) {
	o, calling, refused := a.result()
	var wire *jsonrpc.Error
	var blocked *safehttp.BlockedError
	var large *safehttp.TooLargeError
	switch {
	case refused != nil:
		return false, refusal(a.ctx, what, refused)
	case a.ctx.Err() != nil:
		return false, fmt.Errorf("%s: %w", what, context.Cause(a.ctx))
	case a.life.Err() != nil:
		return false, fmt.Errorf("%s: %w: %w", what, ErrClosed, o.doubt(calling))
	case errors.As(o.fault, &blocked), errors.As(err, &blocked):
		return false, &tools.Error{Message: fmt.Sprintf("%s: %s", what, blocked.Error()), Cause: blocked}
	case s.lost(o):
		return true, fmt.Errorf("%s: the server does not know the session: %w", what, tools.ErrNotExecuted)
	case o.wire != nil && o.status <= http.StatusInternalServerError:
		return false, t.protocolError(what, o.wire)
	case o.status != 0 && o.status/100 != 2:
		return false, statusFailure(what, o.status, o.doubt(calling))
	case errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF) && !o.sent && s.single():
		return true, fmt.Errorf("%s: connection closed: %w", what, tools.ErrNotExecuted)
	case errors.Is(o.fault, errTooLarge), errors.As(o.fault, &large):
		return false, tools.Errorf("%s: %s", what, errTooLarge.Error())
	case errors.Is(o.fault, errNoAnswer):
		return false, fmt.Errorf("%s: %w: %w", what, errNoAnswer, o.doubt(calling))
	case o.fault != nil:
		return false, fmt.Errorf("%s: %s: %w", what, faultText(o.fault), o.doubt(calling))
	case errors.Is(err, errBusy):
		return false, fmt.Errorf("%s: %w: %w", what, errBusy, tools.ErrNotExecuted)
	case err != nil && strings.Contains(err.Error(), "unsupported InputRequest method"): // go-sdk gives it no type
		return false, tools.Errorf("%s: the server wants input of an unknown kind, which is not offered here", what)
	case errors.As(err, &wire) && wire.Message != rejected: // go-sdk's own error has the server's type
		return false, t.protocolError(what, wire)
	default:
		return false, fmt.Errorf("%s: %w: %w", what, errNoAnswer, o.doubt(calling))
	}
}

// doubt says whether the failed request may have run a tool: not before the call, not if it was not sent, not if the server
// answered that it would not.
func (o outcome) doubt(calling bool) error {
	if calling && o.sent && o.status/100 != 4 {
		return tools.ErrUnknown
	}
	return tools.ErrNotExecuted
}

// refusal is for attempts that were given up before a tool ran.
func refusal(ctx context.Context, what string, err error) error {
	var required *auth.RequiredError
	var told *tools.Error
	switch {
	case errors.As(err, &required):
		return fmt.Errorf("%s: %w", what, err)
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, context.Cause(ctx))
	case errors.As(err, &told):
		return told
	case errors.Is(err, auth.ErrUnavailable):
		return fmt.Errorf("%s: %w: %w", what, tools.ErrNotExecuted, err)
	case errors.Is(err, errSilent), errors.Is(err, ErrClosed):
		return fmt.Errorf("%s: %w: %w", what, tools.ErrNotExecuted, err)
	case errors.Is(err, errNoBroker), errors.Is(err, errStaticRefused), errors.Is(err, errRefusedAgain), errors.Is(err, errOtherOrigin):
		return &tools.Error{Message: what + ": " + err.Error(), Cause: err}
	default:
		return &tools.Error{Message: what + ": the server refused the request and a login would not help", Cause: err}
	}
}

func statusFailure(what string, status int, doubt error) error {
	text := (&statusError{status}).Error()
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		return fmt.Errorf("%s: %s: %w", what, text, doubt)
	case status/100 == 3:
		return tools.Errorf("%s: %s: the server redirects, which is not followed; the definition needs the final URL", what, text)
	default:
		return tools.Errorf("%s: %s", what, text)
	}
}

// protocolError tells the model a JSON-RPC error, unless it is a request for a person.
func (t *toolset) protocolError(what string, wire *jsonrpc.Error) error {
	if wire.Code == sdk.CodeURLElicitationRequired {
		return t.elicited(what, wire)
	}
	return tools.Errorf("%s: error %d: %s", what, wire.Code, cut(wire.Message, maxText))
}

// faultText is a fixed vocabulary: an error of net/http may print the URL.
func faultText(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errSilent), errors.As(err, &timeout) && timeout.Timeout():
		return errSilent.Error()
	default:
		return "connection failed"
	}
}

// cut shortens text to at most limit bytes at the end of a character.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	const mark = "…"
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
