package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	// standingTimeout bounds the wait for the headers of a standing stream.
	standingTimeout = 30 * time.Second
	// standingPause is the first pause before a standing stream is opened again, maxStandingPause the longest.
	standingPause    = time.Second
	maxStandingPause = 30 * time.Second
)

var errNotOffered = errors.New("the server offers no standing stream")

// standing is the body of the stream that belongs to no call (GET, revision 2025-11-25). To go-sdk it never ends: there, its
// end would be that of the connection, and its beginning keeps connecting waiting. So it is opened when it is read, opened
// again when a server or a proxy ends it, and silent where a server has none. Only whole events come out of it.
type standing struct {
	transport *transport
	req       *http.Request
	ctx       context.Context //nolint:containedctx // an io.Reader has no other way to end
	cancel    context.CancelFunc

	inner io.ReadCloser
	lines *bufio.Reader
	event []byte // in part
	ready []byte
	id    string // of the last event
	pause time.Duration
}

// stand answers a request for the standing stream.
func (t *transport) stand(req *http.Request) *http.Response {
	ctx, cancel := context.WithCancel(req.Context())
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"text/event-stream"}},
		ContentLength: -1, Request: req,
		Body: &standing{transport: t, req: req, ctx: ctx, cancel: cancel, pause: standingPause},
	}
}

// Read implements io.Reader. Its only error is that of the request's context.
func (s *standing) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if err := s.ctx.Err(); err != nil {
			return 0, err //nolint:wrapcheck // an io.Reader's error
		}
		err := s.next()
		switch {
		case err == nil:
		case errors.Is(err, errNotOffered):
			<-s.ctx.Done()
		default:
			select {
			case <-s.ctx.Done():
			case <-time.After(s.pause):
			}
			s.pause = min(2*s.pause, maxStandingPause)
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// Close implements io.Closer.
func (s *standing) Close() error {
	s.cancel()
	s.reset()
	return nil
}

// next takes one step towards an event.
func (s *standing) next() error {
	if s.lines == nil {
		return s.open()
	}
	line, err := s.lines.ReadBytes('\n')
	if err != nil || len(s.event)+len(line) > maxJSON {
		s.reset()
		return errSilent
	}
	s.event = append(s.event, line...)
	if id, ok := bytes.CutPrefix(line, []byte("id:")); ok {
		s.id = strings.TrimSpace(string(id))
	}
	if len(bytes.TrimRight(line, "\r\n")) == 0 {
		s.ready, s.event = s.event, nil
		s.pause = standingPause
	}
	return nil
}

func (s *standing) open() error {
	t := s.transport
	t.mu.Lock()
	token, gone := t.last, t.gone
	t.mu.Unlock()
	if gone {
		return errNotOffered
	}
	req := s.req.Clone(s.ctx)
	if s.id != "" {
		req.Header.Set(lastEventID, s.id)
	}
	resp, err := t.send(req, token, nil, standingTimeout)
	if err != nil {
		return err
	}
	switch status := resp.StatusCode; {
	case status == http.StatusOK && mediaType(resp) == "text/event-stream":
		s.inner, s.lines = resp.Body, bufio.NewReader(resp.Body)
		return nil
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusTooManyRequests, status >= 500:
		discard(resp) // a later call may bring another token
		return &statusError{status}
	default:
		discard(resp)
		return errNotOffered
	}
}

func (s *standing) reset() {
	if s.inner != nil {
		_ = s.inner.Close()
	}
	s.inner, s.lines, s.event = nil, nil, nil
}
