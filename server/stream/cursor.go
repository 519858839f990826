package stream

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// ErrCursor is for a text that is not the id of a frame.
var ErrCursor = errors.New("stream: not the id of a frame")

// Cursor is how far a reader has read: the id of a frame, and what a reader that comes back sends as Last-Event-ID (WHATWG HTML,
// server-sent events). Clients take it as it is.
type Cursor struct {
	// Seq is that of the last event.
	Seq int64
	// Partial is the Seq of the last piece of an answer; 0 if none were told.
	Partial int64
	// Request tells the request whose stream it was from others; empty for readers of a whole session, as are Invocations.
	Request string
	// Invocations are those that the reader still follows, the current one first.
	Invocations []string
}

const (
	maxCursor      = 1024 // bytes; a turn is at most a few invocations
	maxInvocations = 8
)

// String is "57", "57.3" with pieces, and "57.3~request~e-1~e-2" with invocations.
func (c Cursor) String() string {
	out := strconv.FormatInt(c.Seq, 10)
	if c.Partial > 0 {
		out += "." + strconv.FormatInt(c.Partial, 10)
	}
	if len(c.Invocations) == 0 {
		return out
	}
	return strings.Join(append([]string{out, c.Request}, c.Invocations...), "~")
}

// ParseCursor reads what String has written, or returns [ErrCursor].
func ParseCursor(text string) (c Cursor, err error) {
	if len(text) > maxCursor {
		return c, ErrCursor
	}
	numbers, rest, found := strings.Cut(text, "~")
	seq, partial, pieces := strings.Cut(numbers, ".")
	if c.Seq, err = number(seq); err != nil {
		return Cursor{}, err
	}
	if pieces {
		if c.Partial, err = number(partial); err != nil {
			return Cursor{}, err
		}
	}
	if !found {
		return c, nil
	}
	all := strings.Split(rest, "~")
	c.Request, c.Invocations = all[0], all[1:]
	if len(c.Invocations) == 0 || len(c.Invocations) > maxInvocations || slices.Contains(c.Invocations, "") {
		return Cursor{}, ErrCursor
	}
	return c, nil
}

// LastEventID is the id of the frame behind which a client that comes back wants to go on: the header, which is newer than a query
// that the client repeats, else the query's starting_after or what older clients call it. Empty: from the beginning.
func LastEventID(r *http.Request, older ...string) string {
	if id := r.Header.Get("Last-Event-Id"); id != "" {
		return id
	}
	query := r.URL.Query()
	for _, name := range append(older, "starting_after") {
		if id := query.Get(name); id != "" {
			return id
		}
	}
	return ""
}

func number(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, ErrCursor
	}
	return n, nil
}
