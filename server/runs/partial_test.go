package runs_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// A run that was started with streaming shows pieces to streams that ask for them, and to no others; a stream that comes back
// gets those that it has not had.
func TestPiecesOnTheStreamOfEvents(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, body := b.do(http.MethodPost, "/apps/tickets/users/ann/runs", `{"task":"tell me","session":"s1","mode":"chat","streaming":true}`)
	require.Equal(t, http.StatusAccepted, status, body)
	const events = "/apps/tickets/users/ann/sessions/s1/events?follow=true&until=end"
	p := b.player("s1")
	p.Take()
	s := p.Speaking()
	s.Piece("Once ")
	along, quiet := b.feed(events+"&partial=true", ""), b.feed(events, "")
	along.next() // what was asked
	quiet.next()
	first := along.next()
	require.Contains(t, first.data, `"partial":true`)
	require.Contains(t, first.data, `"Once "`)
	s.Piece("upon a time.")
	second := along.next()
	require.Contains(t, second.data, `"upon a time."`)
	back := b.feed(events+"&partial=true&starting_after="+first.id, "")
	require.Equal(t, second.data, back.next().data)
	answer := s.End()
	p.Finish(wire.EndDone, false)
	for _, f := range []*feed{along, quiet, back} {
		require.Equal(t, string(answer.Body), f.next().data)
		require.Equal(t, "end", f.next().event)
	}
	back = b.feed(events+"&partial=true", second.id)
	require.Equal(t, string(answer.Body), back.next().data)
}
