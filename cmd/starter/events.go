package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// entry is one event of a stream.
type entry struct {
	seq   int64
	raw   json.RawMessage
	event event
}

// stream calls each for the events of an invocation after a sequence number. It returns true when the server says that
// the invocation has ended, and false when the connection was lost.
func (c *client) stream(ctx context.Context, app, session, invocation string, after int64, each func(entry) error) (complete bool, err error) {
	query := url.Values{"after": {strconv.FormatInt(after, 10)}, "follow": {"true"}, "until": {"end"}}
	if invocation != "" {
		query.Set("invocation", invocation)
	}
	resp, err := c.do(ctx, http.MethodGet, c.session(app, session, "/events"), query, nil)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	frames := frameReader{in: bufio.NewReader(resp.Body)}
	for {
		f, err := frames.next()
		if err != nil {
			return false, ctx.Err() //nolint:wrapcheck // a lost connection is no error: the caller comes back
		}
		if f.name == "end" {
			return true, nil
		}
		if f.name != "" || len(f.data) == 0 {
			continue
		}
		e := entry{seq: f.id, raw: f.data}
		if err := json.Unmarshal(f.data, &e.event); err != nil {
			return false, failed("read event %d: %w", f.id, err)
		}
		if err := each(e); err != nil {
			return false, err
		}
	}
}

// frame is one message of an event stream (HTML standard, "server-sent events").
type frame struct {
	id   int64
	name string
	data []byte
}

// maxFrame bounds one message in bytes; the largest is a tool result.
const maxFrame = 16 << 20

type frameReader struct {
	in *bufio.Reader
	id int64
}

func (r *frameReader) next() (frame, error) {
	var f frame
	var data []string
	size, some := 0, false
	for {
		line, err := r.in.ReadString('\n')
		if err != nil {
			return f, err //nolint:wrapcheck // io.EOF
		}
		line = strings.TrimRight(line, "\r\n")
		if size += len(line); size > maxFrame {
			return f, errors.Join(io.ErrShortBuffer, errors.New("event is too large"))
		}
		if line == "" {
			if !some {
				continue
			}
			f.id, f.data = r.id, []byte(strings.Join(data, "\n"))
			return f, nil
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				r.id = n
			}
			some = true
		case "event":
			f.name, some = value, true
		case "data":
			data, some = append(data, value), true
		}
	}
}
