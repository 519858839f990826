package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"tarry/auth"
)

const (
	// linger is how long the rest of an answer is read after the call has its result. Reading to the end keeps the TCP
	// connection; a server that never ends its stream must not keep ours.
	linger = time.Second
	// refusalTimeout is how long the body of an answer is read that is none. A server need not end it.
	refusalTimeout = 2 * time.Second
)

// send sends a copy of req. The answer's body ends with an error after silence; 0 means never.
func (t *transport) send(req *http.Request, token auth.AccessToken, a *attempt, silence time.Duration) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	b := &body{cancel: cancel, silence: silence, unhook: func() bool { return true }}
	resumed := req.Header.Get(lastEventID) != ""
	call := a != nil && (req.Method == http.MethodPost || resumed)
	if call {
		b.heard = a.heard
	}
	b.timer = time.AfterFunc(silence, func() {
		if call && !a.over() && !b.rushed() {
			a.abandon()
		}
		cancel(errSilent)
	})
	if call && !resumed {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteHeaders: func() { a.note(func(o *outcome) { o.sent = true }) },
		})
	}
	out := req.Clone(ctx)
	if req.GetBody != nil {
		copied, err := req.GetBody()
		if err != nil {
			b.release(err)
			return nil, fmt.Errorf("copy request: %w", err)
		}
		out.Body = copied
	}
	t.dress(out, token)
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		b.release(err)
		return nil, fmt.Errorf("send: %w", err)
	}
	b.inner = resp.Body
	resp.Request = req // not what was sent: a key may stand in its query
	switch {
	case resp.StatusCode/100 != 2:
		b.hurry(refusalTimeout)
	case call:
		a.heard()
		b.unhook = context.AfterFunc(a.life, func() { b.hurry(linger) }) //nolint:contextcheck // the attempt ends before or after the request does
	case req.Method == http.MethodGet:
		b.timer.Stop() // a stream of all calls: each has a watch of its own
		b.silence = 0
	}
	resp.Body = b
	return resp, nil
}

// dress sets the headers of the definition where go-sdk has none, and the token over all.
func (t *transport) dress(req *http.Request, token auth.AccessToken) {
	for name, value := range t.headers {
		if len(req.Header.Values(name)) == 0 {
			req.Header.Set(name, value.Reveal())
		}
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", t.agent)
	}
	token.Put(req, t.auth)
}

// body is a response body that a silent server cannot keep open.
type body struct {
	inner  io.ReadCloser
	cancel context.CancelCauseFunc
	unhook func() bool
	heard  func() // may be nil

	mu      sync.Mutex
	timer   *time.Timer
	silence time.Duration // 0: any
	hurried bool
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.inner.Read(p)
	if n > 0 && b.heard != nil {
		b.heard()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > 0 && b.silence > 0 && !b.hurried && b.timer.Stop() {
		b.timer.Reset(b.silence)
	}
	return n, err //nolint:wrapcheck // a Reader hands on the error it got, and io.EOF must stay bare
}

// Close implements io.Closer.
func (b *body) Close() error {
	err := b.inner.Close()
	b.release(nil)
	return err //nolint:wrapcheck // a thin wrapper
}

// hurry ends the body after d, whatever comes.
func (b *body) hurry(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hurried {
		return
	}
	b.hurried = true
	if b.timer.Stop() || b.silence == 0 {
		b.timer.Reset(d)
	}
}

func (b *body) rushed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hurried
}

func (b *body) release(cause error) {
	b.unhook()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hurried = true
	b.timer.Stop()
	b.cancel(cause)
}
