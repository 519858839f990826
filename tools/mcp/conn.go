package mcp

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

// conn is the connection of one owner to one server. It outlives sessions: a server that was restarted gets a new one.
type conn struct {
	opener *Opener
	key    key
	def    *agent.MCPToolset
	// dialing is held by the one attempt that connects.
	dialing chan struct{}
	// secrets are those of the definition that were sent: a server may repeat them.
	secrets auth.Scrubber

	// Guarded by the opener.
	users int
	idle  *time.Timer

	mu      sync.Mutex
	session *session
	closed  bool
	calls   int64
	running map[string]*attempt // by progress token
}

// session is a live MCP session.
type session struct {
	*sdk.ClientSession
	http     *transport // nil for a process
	cancel   context.CancelCauseFunc
	*process // nil otherwise
	// used says that it is older than the attempt that looks at it.
	used bool
}

func newConn(o *Opener, k key, def *agent.MCPToolset) *conn {
	return &conn{opener: o, key: k, def: def, dialing: make(chan struct{}, 1), running: map[string]*attempt{}}
}

func (c *conn) unidle() {
	if c.idle != nil {
		c.idle.Stop()
		c.idle = nil
	}
}

func (c *conn) connected() bool { return c.current() != nil }

func (c *conn) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *conn) timeout() time.Duration {
	if c.def.Timeout > 0 {
		return c.def.Timeout
	}
	return c.opener.cfg.ConnectTimeout
}

// silence is how long a server may say nothing during a call.
func (c *conn) silence() time.Duration {
	if c.def.ReadTimeout > 0 {
		return c.def.ReadTimeout
	}
	return c.opener.cfg.ReadTimeout
}

// acquire returns the live session or connects with the attempt's broker. Others wait meanwhile, and then try with theirs:
// a failure is the failure of one attempt.
func (c *conn) acquire(a *attempt) (*session, error) {
	if s := c.current(); s != nil {
		again := *s
		again.used = true
		return &again, nil
	}
	timer := time.NewTimer(c.timeout())
	defer timer.Stop()
	select {
	case c.dialing <- struct{}{}:
		defer func() { <-c.dialing }()
	case <-timer.C:
		return nil, a.refuse(errSilent)
	case <-a.ctx.Done():
		return nil, a.refuse(context.Cause(a.ctx))
	case <-a.life.Done():
		return nil, a.refuse(ErrClosed)
	}
	if s := c.current(); s != nil {
		return s, nil
	}
	s, err := c.connect(a)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.session = s
	}
	c.mu.Unlock()
	if closed {
		s.shut()
		return nil, a.refuse(ErrClosed)
	}
	return s, nil
}

func (c *conn) connect(a *attempt) (*session, error) {
	// The session keeps this context's values: it must hold nothing of the caller's.
	ctx, cancel := context.WithCancelCause(c.opener.life)
	giveUp := func(err error) {
		err = a.refuse(err) // first, so that no farewell is sent to a server that does not answer
		cancel(err)
	}
	wire, s, err := c.transport(a.ctx)
	if err != nil {
		cancel(err)
		return nil, a.refuse(err)
	}
	unhook := context.AfterFunc(a.ctx, func() { giveUp(context.Cause(a.ctx)) })
	stop := a.within(c.timeout(), func() { giveUp(errSilent) })
	s.ClientSession, err = c.client().Connect(context.WithValue(ctx, attemptKey{}, a), wire, nil)
	s.cancel = cancel
	stop()
	unhook()
	switch {
	case err != nil:
		s.kill()
		cancel(err)
		return nil, fmt.Errorf("connect: %w", err)
	case ctx.Err() != nil:
		s.shut()
		return nil, fmt.Errorf("connect: %w", context.Cause(ctx))
	}
	return s, nil
}

// transport resolves secrets anew: a connection sees those of its beginning.
func (c *conn) transport(ctx context.Context) (sdk.Transport, *session, error) {
	if c.def.Transport == agent.TransportStdio {
		return c.command(ctx)
	}
	target, err := url.Parse(c.def.URL)
	if err != nil || target.Host == "" {
		return nil, nil, tools.Errorf("toolset %s: its URL is not valid", c.def.Name)
	}
	headers, err := c.resolve(ctx, c.def.Headers)
	if err != nil {
		return nil, nil, err
	}
	t := &transport{
		base: c.opener.cfg.HTTP.Transport, target: target, headers: headers, silence: c.silence(), sse: c.def.Transport == agent.TransportSSE,
		agent: c.opener.cfg.ClientName + "/" + c.opener.cfg.ClientVersion,
	}
	if c.def.Auth != nil {
		t.auth = *c.def.Auth
	}
	for name := range headers {
		t.static = t.static || c.def.Auth == nil && strings.EqualFold(name, "Authorization")
	}
	client := &http.Client{
		Transport:     newRenumber(t),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	switch c.def.Transport {
	case agent.TransportStreamableHTTP:
		return &sdk.StreamableClientTransport{
			Endpoint: c.def.URL, HTTPClient: client, MaxRetries: 2,
			DisableStandaloneSSE: !c.def.AcceptDefaults, // nothing else that a server says there is heard
		}, &session{http: t}, nil
	case agent.TransportSSE:
		return &sdk.SSEClientTransport{Endpoint: c.def.URL, HTTPClient: client}, &session{http: t}, nil
	default:
		return nil, nil, tools.Errorf("toolset %s: transport %q is not supported", c.def.Name, c.def.Transport)
	}
}

// drop forgets a session that serves no more. Calls that still run in it may end, and what is said before goes first.
func (c *conn) drop(s *session, gone bool, before *attempt) {
	c.mu.Lock()
	if c.session == nil || c.session.ClientSession != s.ClientSession {
		c.mu.Unlock()
		return
	}
	c.session = nil
	c.mu.Unlock()
	if gone && s.http != nil {
		s.http.forget()
	}
	c.opener.work.Go(func() { // inside a call, so Close does not wait for work yet
		if before != nil {
			before.wait()
		}
		s.shut()
	})
}

func (c *conn) close() {
	c.mu.Lock()
	s := c.session
	c.session, c.closed = nil, true
	c.mu.Unlock()
	if s != nil {
		s.shut()
	}
}

func (s *session) shut() {
	defer time.AfterFunc(closingTime, s.kill).Stop()
	_ = s.Close() // a server that is gone cannot be told
	s.cancel(errSessionGone)
	s.kill() // what the process started and left behind
}

// single says that all answers come in one stream.
func (s *session) single() bool { return s != nil && (s.http == nil || s.http.sse) }

// lost says whether an answer means that the server does not know the session: 404 by the spec, 400 with a server-defined
// code from servers that follow the TypeScript SDK's example. The old transport's servers say either: the address was their
// own, and worked when connecting.
func (s *session) lost(o outcome) bool {
	switch {
	case s == nil || s.http == nil:
		return false
	case s.http.sse:
		return o.status == http.StatusNotFound || o.status == http.StatusBadRequest && o.wire == nil
	case !s.used || s.ID() == "":
		return false
	}
	return o.status == http.StatusNotFound || o.status == http.StatusBadRequest && o.wire != nil && o.wire.Code == -32000
}

func (t *transport) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone = true
}
