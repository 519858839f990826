package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"tarry/agent"
	"tarry/auth"
)

const (
	maxJSON      = 16 << 20
	maxErrorBody = 64 << 10
	// partingTimeout bounds requests that nobody waits for.
	partingTimeout = 2 * time.Second

	lastEventID = "Last-Event-ID"
)

// transport carries the requests of one connection. It puts the token of the calling attempt on each, answers challenges
// and writes down what happened.
type transport struct {
	base    http.RoundTripper
	target  *url.URL
	headers map[string]auth.Secret
	// auth is the definition's credential; the zero value means what the server itself asks for.
	auth agent.Auth
	// static says that the definition itself holds the authorization, so that a 401 is no reason for a login.
	static  bool
	silence time.Duration
	agent   string
	// sse is the transport of revision 2024-11-05: answers come in one stream for all calls.
	sse bool

	mu   sync.Mutex
	last auth.AccessToken // accepted last; see the package comment
	gone bool             // the server does not know the session any more
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.roundTrip(req)
	if err != nil {
		return nil, &rejectedError{err}
	}
	return resp, nil
}

func (t *transport) roundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close() // send uses copies
	}
	if req.Method == http.MethodGet && !t.sse && req.Header.Get(lastEventID) == "" {
		return t.stand(req), nil
	}
	a := attemptFrom(req.Context())
	canceled := a.canceled()
	if canceled {
		defer a.notice()
	}
	if !t.home(req.URL) {
		// The old SSE transport lets the server name another address, which must not get the token.
		if a.over() {
			return nil, errOtherOrigin
		}
		return nil, a.refuse(errOtherOrigin)
	}
	if a.over() {
		return t.parting(req)
	}
	if _, _, refused := a.result(); refused != nil {
		return nil, refused
	}
	if canceled {
		// What becomes of the notice must not be taken for what became of the call.
		return t.parting(req)
	}
	// A resumed stream belongs to a call that runs already: after a login it would run a second time.
	resumed := req.Header.Get(lastEventID) != ""
	want := a.want
	for try := 0; ; try++ {
		token, err := a.token(want)
		switch {
		case err != nil && resumed:
			a.note(func(o *outcome) { o.fault = err })
			return nil, err
		case err != nil:
			return nil, a.refuse(err)
		}
		resp, err := t.send(req, token, a, t.silence)
		if err != nil {
			a.note(func(o *outcome) { o.status, o.wire, o.fault = 0, nil, err })
			return nil, err
		}
		if resumed || !challenges(resp) {
			return t.accept(req, resp, token, a)
		}
		status, values := resp.StatusCode, slices.Clone(resp.Header.Values("WWW-Authenticate"))
		discard(resp) // a body that refuses a token may repeat it
		a.note(func(o *outcome) { *o = outcome{status: status} })
		if t.static && token.Access.IsZero() {
			return nil, a.refuse(errStaticRefused)
		}
		if err := a.challenged(want, auth.Challenge{Status: status, WWWAuthenticate: values, Used: token.Version}); err != nil {
			return nil, err
		}
		if try > 0 {
			return nil, a.refuse(errRefusedAgain)
		}
		want.Refused = token.Version
	}
}

// parting sends what belongs to no running call.
func (t *transport) parting(req *http.Request) (*http.Response, error) {
	t.mu.Lock()
	token, gone := t.last, t.gone
	t.mu.Unlock()
	if gone {
		return nil, errSessionGone
	}
	resp, err := t.send(req, token, nil, partingTimeout)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		discard(resp)
		return nil, &statusError{resp.StatusCode}
	}
	return resp, nil
}

// accept hands on what go-sdk can use. Other answers become errors here, where they fail one request: go-sdk would give up
// the connection, and with it the calls of others.
func (t *transport) accept(req *http.Request, resp *http.Response, token auth.AccessToken, a *attempt) (*http.Response, error) {
	status := resp.StatusCode
	a.note(func(o *outcome) { o.status, o.wire, o.fault = status, nil, nil })
	if status/100 == 2 {
		t.mu.Lock()
		t.last = token
		t.mu.Unlock()
		resp, err := t.answer(req, resp, a)
		if err != nil {
			a.note(func(o *outcome) { o.fault = err })
		}
		return resp, err
	}
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		discard(resp)
		return nil, &statusError{status}
	}
	body, err := readAll(resp.Body, maxErrorBody)
	if err != nil {
		return nil, &statusError{status}
	}
	wire := wireError(body)
	a.note(func(o *outcome) { o.wire = wire })
	if wire == nil || req.Method != http.MethodPost {
		return nil, &statusError{status}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// answer refuses a 2xx that will never answer the call that was sent, or would break the connection for others.
func (t *transport) answer(req *http.Request, resp *http.Response, a *attempt) (*http.Response, error) {
	id := callID(req)
	if t.sse || id == "" || mediaType(resp) == "text/event-stream" {
		return resp, nil
	}
	if mediaType(resp) != "application/json" {
		discard(resp)
		return nil, errNoAnswer
	}
	body, err := readAll(resp.Body, maxJSON)
	if err != nil {
		return nil, err
	}
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Error  *jsonrpc.Error  `json:"error"`
	}
	if err := json.Unmarshal(body, &message); err != nil || message.Method != "" {
		return nil, errNoAnswer
	}
	if string(message.ID) != id {
		a.note(func(o *outcome) { o.wire = message.Error }) // about the request, if it has an error without an id
		return nil, errNoAnswer
	}
	if _, err := jsonrpc.DecodeMessage(body); err != nil {
		return nil, errNoAnswer
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// callID is the id of the JSON-RPC call in a request, or "" for what is not answered.
func callID(req *http.Request) string {
	if req.Method != http.MethodPost || req.GetBody == nil {
		return ""
	}
	body, err := req.GetBody()
	if err != nil {
		return ""
	}
	defer body.Close()
	var message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.NewDecoder(body).Decode(&message); err != nil || message.Method == "" {
		return ""
	}
	return string(message.ID)
}

// home says whether u is where the definition points.
func (t *transport) home(u *url.URL) bool {
	return u.Scheme == t.target.Scheme && strings.EqualFold(u.Host, t.target.Host)
}

// challenges says whether a token, or another one, could help.
func challenges(resp *http.Response) bool {
	if resp.StatusCode != http.StatusForbidden {
		return resp.StatusCode == http.StatusUnauthorized
	}
	all, err := oauthex.ParseWWWAuthenticate(resp.Header.Values("WWW-Authenticate"))
	return err == nil && slices.ContainsFunc(all, func(c oauthex.Challenge) bool {
		return c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope"
	})
}

func wireError(body []byte) *jsonrpc.Error {
	var message struct {
		Version string         `json:"jsonrpc"`
		Error   *jsonrpc.Error `json:"error"`
	}
	if json.Unmarshal(body, &message) == nil && message.Version == "2.0" {
		return message.Error
	}
	return nil
}

func mediaType(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

func readAll(body io.ReadCloser, limit int64) ([]byte, error) {
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read answer: %w", err)
	case int64(len(data)) > limit:
		return nil, errTooLarge
	}
	return data, nil
}

// discard reads what little may be left, so that the connection can be used again.
func discard(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, maxErrorBody)
	_ = resp.Body.Close()
}
