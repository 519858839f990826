package adk_test

import (
	"bufio"
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/stream/streamtest"
	"tarry/wire"
)

// told is a frame as a client reads it.
type told struct{ id, data string }

// reader reads a stream of /run_sse frame by frame.
type reader struct {
	b     *bundle
	lines *bufio.Scanner
	body  interface{ Close() error }
	last  string // id
}

// reads sends a run request, with a header if one is given: its name and value.
func (b *bundle) reads(body any, header ...string) *reader {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.url+"/run_sse", strings.NewReader(encode(b.t, body)))
	require.NoError(b.t, err)
	r.Header.Set("Accept", "text/event-stream")
	if len(header) == 2 {
		r.Header.Set(header[0], header[1])
	}
	response, err := (&http.Client{}).Do(r)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = response.Body.Close() })
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	return &reader{b: b, lines: lines, body: response.Body}
}

// next returns the next frame that has data; false at the end. The ids of others count, as in browsers.
func (r *reader) next() (out told, ok bool) {
	r.b.t.Helper()
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			r.last = value
		case "data":
			out = told{r.last, value}
		case "":
			if out.data != "" {
				return out, true
			}
		}
	}
	return out, false
}

// begun waits for the id that comes before there is anything to tell.
func (r *reader) begun() string {
	r.b.t.Helper()
	for r.last == "" && r.lines.Scan() {
		if id, ok := strings.CutPrefix(r.lines.Text(), "id: "); ok {
			r.last = id
		}
	}
	require.NotEmpty(r.b.t, r.last)
	return r.last
}

func (r *reader) rest() (out []told) {
	r.b.t.Helper()
	for frame, ok := r.next(); ok; frame, ok = r.next() {
		out = append(out, frame)
	}
	require.NoError(r.b.t, r.lines.Err())
	return out
}

func datas(frames []told) (out []string) {
	for _, f := range frames {
		out = append(out, f.data)
	}
	return out
}

func streaming(id, text string) map[string]any {
	out := say(id, text)
	out["streaming"] = true
	return out
}

// Pieces come as a model gives them, before their event and after what came before it, and only to clients that ask.
func TestPiecesOnTheWire(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	r := b.reads(streaming("s1", "tell me"))
	p := b.player("s1")
	p.Take()
	calls := p.Say("", "call-1")
	result := p.Respond("call-1", "")
	s := p.Speaking()
	s.Piece("Once ")
	var got []told
	for range 3 {
		frame, ok := r.next()
		require.True(t, ok)
		got = append(got, frame)
	}
	s.Piece("upon ")
	s.Piece("a time.")
	for range 2 {
		frame, ok := r.next()
		require.True(t, ok)
		got = append(got, frame)
	}
	answer := s.End()
	p.Finish(wire.EndDone, false)
	got = append(got, r.rest()...)
	require.Equal(t, []string{string(calls.Body), string(result.Body)}, datas(got[:2]))
	require.Equal(t, string(answer.Body), got[5].data)
	require.Len(t, got, 6)
	text := ""
	for _, frame := range got[2:5] {
		event := decode(t, frame.data)
		require.Equal(t, true, event["partial"])
		require.NotEmpty(t, event["id"])
		require.NotEqual(t, answer.ID, event["id"])
		require.Equal(t, p.Invocation, event["invocationId"])
		content := event["content"].(map[string]any)
		require.Equal(t, "model", content["role"])
		text += content["parts"].([]any)[0].(map[string]any)["text"].(string)
	}
	require.Equal(t, "Once upon a time.", text)

	// The same, for one who does not ask.
	got = nil
	r = b.reads(say("s1", "again"))
	p.Take()
	s = p.Speaking()
	s.Piece("Once ")
	answer = s.End()
	p.Finish(wire.EndDone, false)
	require.Equal(t, []string{string(answer.Body)}, datas(r.rest()))
}

// Wherever a stream is cut off, the same request with Last-Event-ID or starting_after gives what is missing and nothing twice,
// from another server, and says nothing again.
func TestStreamIsReadOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	body := streaming("s1", "tell me")
	first := b.reads(body)
	start := first.begun()
	p := b.player("s1")
	p.Take()
	p.Say("", "call-1")
	p.Respond("call-1", "")
	s := p.Speaking()
	var whole []told
	read := func(n int) {
		for range n {
			frame, ok := first.next()
			require.True(t, ok)
			whole = append(whole, frame)
		}
	}
	read(2)
	s.Piece("Once ")
	read(1)
	s.Piece("upon a time.")
	read(1)
	other := &bundle{t: t, path: b.path}
	other.serve(streamtest.Reopen(t, b.path))
	var readers []*reader
	for i, id := range []string{start, whole[0].id, whole[1].id, whole[2].id, whole[3].id} {
		r := other.reads(body, "Last-Event-ID", id)
		for _, want := range whole[i:] {
			frame, ok := r.next()
			require.True(t, ok)
			require.Equal(t, want.data, frame.data)
		}
		readers = append(readers, r)
	}
	silent := maps.Clone(body) // one that only names the session
	delete(silent, "newMessage")
	readers = append(readers, other.reads(silent, "Last-Event-ID", whole[3].id))
	s.End()
	p.Finish(wire.EndDone, false)
	whole = append(whole, first.rest()...)
	require.Len(t, whole, 5)
	for _, r := range readers {
		require.Equal(t, datas(whole[4:]), datas(r.rest()))
	}
	// Later: the pieces are gone, the events stay.
	for i, want := range [][]string{{whole[0].data, whole[1].data, whole[4].data}, {whole[1].data, whole[4].data}, {whole[4].data}, {whole[4].data}, {whole[4].data}, nil} {
		id := start
		if i > 0 {
			id = whole[i-1].id
		}
		require.Equal(t, want, datas(other.reads(body, "Last-Event-ID", id).rest()), i)
		status, events := other.do(http.MethodPost, "/run_sse?starting_after="+id, body)
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, len(want), strings.Count(events, "\ndata: "))
	}
	plain, _, _ := strings.Cut(whole[0].id, "~")
	require.Equal(t, []string{whole[1].data, whole[4].data}, datas(other.reads(silent, "Last-Event-ID", plain).rest()), "the number of an event will do")
	view, err := b.store.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	require.Len(t, view, 4, "nothing was said again")
}

// A stream that follows a reply and words is read on through both invocations.
func TestStreamOfReplyAndWordsIsReadOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	p := b.pending()
	body := request("s1", answer("r1", map[string]any{}), map[string]any{"text": "and then?"})
	p.Grant("r1")
	first := b.reads(body)
	start := first.begun()
	want := texts(p.Respond("call-1", "r1"), p.Say("found"))
	p.Finish(wire.EndDone, false)
	p.Take()
	want = append(want, string(p.Say("that was it").Body))
	p.Finish(wire.EndDone, false)
	whole := first.rest()
	require.Equal(t, want, datas(whole))
	for i, id := range []string{start, whole[0].id, whole[1].id, whole[2].id} {
		require.Equal(t, want[i:], append([]string{}, datas(b.reads(body, "Last-Event-ID", id).rest())...), i)
	}
}

func TestStreamsThatCannotBeReadOn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	b.do(http.MethodPost, sessions, `{"sessionId":"s2"}`)
	b.do(http.MethodPost, "/apps/tickets/users/bob/sessions", `{"sessionId":"s1"}`)
	body := say("s1", "tell me")
	first := b.reads(body)
	id := first.begun()
	p := b.player("s1")
	p.Take()
	p.Say("done")
	p.Finish(wire.EndDone, false)
	first.rest()
	other, silent := say("s1", "something else"), say("s2", "tell me")
	bobs := say("s1", "tell me")
	bobs["userId"] = "bob"
	empty := say("s2", "")
	for name, c := range map[string]struct {
		body map[string]any
		id   string
		says string
	}{
		"not an id":          {body, "nonsense", "is not the id of a frame"},
		"other words":        {other, id, "is of the stream of another request"},
		"number and words":   {body, "57", "is of the stream of another request"},
		"other session":      {silent, id, "is not of a stream of session s2"},
		"other user":         {bobs, id, "is not of a stream of session s1"},
		"forged invocation":  {body, strings.Replace(id, "e-", "e-x", 1), "is not of a stream of session s1"},
		"nothing was said":   {empty, "57", "has no event of that place"},
		"very long":          {body, "1~" + strings.Repeat("x", 3000), "is not the id of a frame"},
		"control characters": {body, "1~\t~\t", "is not the id of a frame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			frames := b.reads(c.body, "Last-Event-ID", c.id).rest()
			require.Len(t, frames, 1)
			require.Contains(t, decode(t, frames[0].data)["error"], c.says)
		})
	}
}

// A message with an Idempotency-Key is one message however often it is sent, on both routes and after its run has ended.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.do(http.MethodPost, sessions, `{"sessionId":"s1"}`)
	b.do(http.MethodPost, sessions, `{"sessionId":"s2"}`)
	body := say("s1", "tell me")
	one := b.reads(body, "Idempotency-Key", "k1")
	one.begun()
	two := b.reads(body, "Idempotency-Key", `"k1"`)
	two.begun()
	p := b.player("s1")
	p.Take()
	want := texts(p.Say("done"))
	p.Finish(wire.EndDone, false)
	require.Equal(t, want, datas(one.rest()))
	require.Equal(t, want, datas(two.rest()))
	require.Equal(t, want, datas(b.reads(body, "Idempotency-Key", "k1").rest()))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+"/run", strings.NewReader(encode(t, body)))
	require.NoError(t, err)
	r.Header.Set("Idempotency-Key", "k1")
	response, err := (&http.Client{}).Do(r)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)

	frames := b.reads(say("s1", "something else"), "Idempotency-Key", "k1").rest()
	require.Len(t, frames, 1)
	require.Contains(t, decode(t, frames[0].data)["error"], "was used for another message")
	for _, bad := range []string{`""`, strings.Repeat("k", 300)} {
		frames = b.reads(body, "Idempotency-Key", bad).rest()
		require.Len(t, frames, 1)
		require.Contains(t, decode(t, frames[0].data)["error"], "Idempotency-Key is not one text")
	}
	// The key is the session's.
	elsewhere := b.reads(say("s2", "something else"), "Idempotency-Key", "k1")
	q := b.player("s2")
	q.Take()
	q.Finish(wire.EndDone, false)
	require.Empty(t, elsewhere.rest())
	view, err := b.store.Timeline(t.Context(), ann, "s1", 0)
	require.NoError(t, err)
	require.Len(t, view, 2)
}
