package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// frame is one of a stream of server-sent events.
type frame struct {
	id, name, data string
	at             time.Time
}

// route is a way to read a session along, and to come back.
type route struct {
	name string
	// open begins, or goes on behind last.
	open func(ctx context.Context, base, session, last string) (*http.Request, error)
	// users says that it tells what people say as well.
	users bool
	// pieces says that it tells pieces of answers.
	pieces bool
}

const jsonType = "application/json"

// posted is POST /run_sse, with the same body each time.
func posted(name string, pieces bool, comeBack func(r *http.Request, last string)) route {
	return route{name: name, pieces: pieces, open: func(ctx context.Context, base, session, last string) (*http.Request, error) {
		in := message(session, map[string]string{"text": "Go."})
		in["streaming"] = pieces
		body, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/run_sse", bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", jsonType)
		r.Header.Set("Accept", "text/event-stream")
		r.Header.Set("Idempotency-Key", session) // for a client that is cut off before the first frame
		if last != "" {
			comeBack(r, last)
		}
		return r, nil
	}}
}

func byHeader(r *http.Request, last string) { r.Header.Set("Last-Event-Id", last) }

func byQuery(r *http.Request, last string) {
	q := r.URL.Query()
	q.Set("starting_after", last)
	r.URL.RawQuery = q.Encode()
}

// followed is GET …/events?follow=true, to the end of the invocation.
func followed(name string, comeBack func(r *http.Request, last string)) route {
	return route{name: name, users: true, open: func(ctx context.Context, base, session, last string) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/apps/assistant/users/user/sessions/"+session+"/events?follow=true&until=end", http.NoBody)
		if err == nil && last != "" {
			comeBack(r, last)
		}
		return r, err
	}}
}

func byAfter(r *http.Request, last string) {
	q := r.URL.Query()
	q.Set("after", last)
	r.URL.RawQuery = q.Encode()
}

// routes are all streaming routes, in each way to come back.
func streamingRoutes() []route {
	return []route{
		posted("run_sse", false, byHeader), posted("run_sse, query", true, byQuery), posted("run_sse, pieces", true, byHeader),
		followed("events", byHeader), followed("events, query", byAfter),
	}
}

// streamer reads a stream, breaks off and comes back.
type streamer struct {
	route
	session string
	client  *http.Client
	host    string // as which servers are asked
	frames  []frame
	last    string
	// after is called with the number of frames that were read.
	after func(int)
}

// read reads until most frames with data were read in all, or to the end if most is negative. half breaks off inside the next
// frame. done says that the stream has ended as streams end.
func (s *streamer) read(ctx context.Context, base string, most int, half bool) (done bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := s.open(ctx, base, s.session, s.last)
	if err != nil {
		return false, err
	}
	req.Host = s.host
	resp, err := s.client.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, 1000))
		return false, fmt.Errorf("%s: status %d: %s", s.name, resp.StatusCode, body)
	}
	lines := bufio.NewReader(resp.Body)
	var f frame
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			if s.users { // it says when it is over
				return false, io.ErrUnexpectedEOF
			}
			return true, nil
		}
		if err != nil {
			return false, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			if f != (frame{}) {
				f.at = time.Now()
				if f.id != "" {
					s.last = f.id
				}
				if f.name == "end" {
					return true, nil
				}
				if f.data != "" {
					s.frames = append(s.frames, f)
				}
				f = frame{}
				if s.after != nil {
					s.after(len(s.frames))
				}
			}
			if most >= 0 && len(s.frames) >= most && !half {
				return false, nil
			}
		case field == "id":
			f.id = value
			if half && most >= 0 && len(s.frames) >= most {
				return false, nil
			}
		case field == "event":
			f.name = value
		case field == "data":
			f.data += value
		}
	}
}

// whole reads to the end, from one server after the other.
func (s *streamer) whole(ctx context.Context, bases ...string) error {
	for i := 0; ; i++ {
		done, err := s.read(ctx, bases[i%len(bases)], -1, false)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("stream of %s: %w: %w", s.session, ctx.Err(), err)
		}
		select { // a client that comes back waits a moment
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// events are the ids that were told, in order, and the words of pieces.
func (s *streamer) told(tb testing.TB) (ids, words []string) {
	tb.Helper()
	for _, f := range s.frames {
		var e struct {
			ID, Error, Author string
			Partial           bool
			Content           struct{ Parts []struct{ Text string } }
		}
		require.NoError(tb, json.Unmarshal([]byte(f.data), &e), f.data)
		require.Empty(tb, e.Error, s.name)
		if e.Partial {
			for _, p := range e.Content.Parts {
				words = append(words, strings.Fields(p.Text)...)
			}
			continue
		}
		require.NotEmpty(tb, e.ID, f.data)
		ids = append(ids, e.ID)
	}
	return ids, words
}

// matches compares what was told with what is stored: no gap, no repeat, in order. Of pieces each word comes once, in order.
func (s *streamer) matches(tb testing.TB, w *world, what string) {
	tb.Helper()
	ids, words := s.told(tb)
	want, said := []string{}, 0
	for _, e := range (runHandle{w.api, "assistant", "user", s.session}).events() {
		if e.Author == "user" {
			said++
		}
		if s.users || e.Author != "user" {
			want = append(want, e.ID)
		}
	}
	require.Equal(tb, want, ids, "%s: %s", s.name, what)
	require.Equal(tb, 1, said, "%s: %s: the message is there once", s.name, what)
	last := 0
	for _, word := range words {
		var n int
		_, err := fmt.Sscanf(word, "w%d", &n)
		require.NoError(tb, err, word)
		require.Greater(tb, n, last, "%s: %s: pieces %v", s.name, what, words)
		last = n
	}
}
