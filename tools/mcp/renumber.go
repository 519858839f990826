package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
)

// renumber adds a number to the JSON-RPC ids of a connection's requests and takes it off the answers. go-sdk counts from 1
// in each connection, and a call that a person's answer lets go on is often repeated by another process: it must not have
// the id of the first request (revision 2026-07-28, multi round-trip requests).
type renumber struct {
	next http.RoundTripper
	base int64
}

// newRenumber chooses a base that no other connection is likely to have, and that JavaScript keeps exactly.
func newRenumber(next http.RoundTripper) *renumber {
	const least, most = 1 << 32, 1 << 52
	return &renumber{next: next, base: least + rand.Int64N(most-least)} //nolint:gosec // ids are no secrets
}

// RoundTrip implements http.RoundTripper.
func (n *renumber) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && req.Body != nil {
		body, err := io.ReadAll(req.Body)
		_ = req.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
		body = n.outgoing(body)
		req = req.Clone(req.Context())
		req.ContentLength = int64(len(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		req.Body, _ = req.GetBody() // never an error
	}
	resp, err := n.next.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // a thin wrapper
	}
	switch mediaType(resp) {
	case "application/json":
		body, err := readAll(resp.Body, maxJSON)
		if err != nil {
			return nil, err
		}
		body = n.incoming(body)
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		resp.Header.Del("Content-Length")
	case "text/event-stream":
		resp.Body = newEvents(n, resp.Body)
	}
	return resp, nil
}

// outgoing gives a request its id, and a cancellation that of the request that it is about.
func (n *renumber) outgoing(message []byte) []byte {
	fields := object(message)
	var method string
	if fields == nil || json.Unmarshal(fields["method"], &method) != nil {
		return message // an answer has the id of the server's request
	}
	if method == "notifications/cancelled" {
		params := object(fields["params"])
		if params == nil || !shift(params, "requestId", n.base) {
			return message
		}
		fields["params"] = encode(params)
		return encode(fields)
	}
	if !shift(fields, "id", n.base) {
		return message
	}
	return encode(fields)
}

// incoming gives an answer the id of the request as go-sdk knows it.
func (n *renumber) incoming(message []byte) []byte {
	fields := object(message)
	if fields == nil || fields["method"] != nil || !shift(fields, "id", -n.base) {
		return message
	}
	return encode(fields)
}

// object reads a JSON object; nil if it is none.
func object(message []byte) (fields map[string]json.RawMessage) {
	if json.Unmarshal(message, &fields) != nil {
		return nil
	}
	return fields
}

func encode(fields map[string]json.RawMessage) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // values stay as they were
	if e.Encode(fields) != nil {
		return nil // cannot be: the values were read from JSON
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// shift adds by to an id, and says whether the sum is one: ids are positive numbers.
func shift(fields map[string]json.RawMessage, key string, by int64) bool {
	id, err := strconv.ParseInt(string(fields[key]), 10, 64)
	if err != nil || id+by <= 0 {
		return false
	}
	fields[key] = json.RawMessage(strconv.FormatInt(id+by, 10))
	return true
}

// events renumbers the messages of an event stream (HTML standard, "server-sent events").
type events struct {
	*renumber
	in    *bufio.Reader
	inner io.Closer
	out   []byte
	// whole is false after an event that is too large: what follows is handed on as it comes, to a reader that refuses it.
	whole bool
	err   error
}

func newEvents(n *renumber, body io.ReadCloser) *events {
	return &events{renumber: n, in: bufio.NewReader(body), inner: body, whole: true}
}

// Read implements io.Reader.
func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		if !e.whole {
			return e.in.Read(p) //nolint:wrapcheck // a Reader hands on the error it got
		}
		e.out, e.err = e.event()
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// Close implements io.Closer.
func (e *events) Close() error {
	return e.inner.Close() //nolint:wrapcheck // a thin wrapper
}

// event reads to the next empty line. What no empty line ends is no event, and is handed on as it is.
func (e *events) event() ([]byte, error) {
	var raw []byte
	for begin := 0; ; {
		part, err := e.in.ReadSlice('\n')
		raw = append(raw, part...)
		switch {
		case len(raw) > maxJSON:
			e.whole = false
			return raw, nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return raw, err //nolint:wrapcheck // as above
		case len(bytes.TrimRight(raw[begin:], "\r\n")) == 0:
			return e.translate(raw), nil
		}
		begin = len(raw)
	}
}

// translate renumbers the message of an event. Data of several lines, as of indented JSON, becomes one.
func (e *events) translate(raw []byte) []byte {
	var out bytes.Buffer
	var data [][]byte
	for line := range bytes.Lines(raw) {
		if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = append(data, bytes.TrimPrefix(bytes.TrimRight(value, "\r\n"), []byte(" ")))
			continue
		}
		if data != nil && len(bytes.TrimRight(line, "\r\n")) == 0 {
			fmt.Fprintf(&out, "data: %s\n", e.incoming(bytes.Join(data, []byte("\n"))))
		}
		out.Write(line)
	}
	return out.Bytes()
}
