package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
	"tarry/store/storetest"
)

// notes is an agent that takes three notes and then says words. Each step takes a moment, so that a reader is there when it
// happens.
func notes(tb testing.TB, delay, pace string) options {
	tb.Helper()
	var words []string
	for i := range 12 {
		words = append(words, fmt.Sprint("w", i+1))
	}
	return options{
		open: true,
		agents: map[string]string{"assistant/root_agent.yaml": "name: assistant\nmodel: ${var:MODEL}\ntools:\n  - name: McpToolset\n    args:\n" +
			"      streamable_http_connection_params:\n        url: " + newFreeServer(tb).url + "\n"},
		script: "agents:\n  - agent: assistant\n    steps:\n      - calls: [{name: note, args: {text: a}}]\n        delay: " + delay +
			"\n      - calls: [{name: note, args: {text: b}}, {name: note, args: {text: c}}]\n        delay: " + delay +
			"\n      - text: " + strings.Join(words, " ") + "\n        delay: " + delay + "\n        pace: " + pace + "\n",
	}
}

// begin makes a session, and posts its message where the route does not.
func (w *world) begin(r route) string {
	w.t.Helper()
	var session struct{ ID string }
	require.Equal(w.t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{}, &session))
	if r.users {
		require.Equal(w.t, http.StatusAccepted, w.api.call("POST", "/apps/assistant/users/user/runs", map[string]string{"task": "Go.", "mode": "chat", "session": session.ID}, nil))
	}
	return session.ID
}

func (w *world) streamer(r route, session string) *streamer {
	return &streamer{route: r, session: session, client: http.DefaultClient, host: w.Addr(stack.Server)}
}

// A client of any streaming route that goes away at any frame, or inside it, and comes back at another server has in the end all
// events of the session, each once and in order. It stops nothing, and posts nothing twice (P27).
func TestClientsThatGoAndComeBack(t *testing.T) { goAndComeBack(t, "") }

func TestClientsThatGoAndComeBackOnPostgres(t *testing.T) { goAndComeBack(t, storetest.Schema(t)) }

func goAndComeBack(t *testing.T, database string) {
	t.Helper()
	t.Parallel()
	o := notes(t, "100ms", "15ms")
	o.database = database
	w := newWorld(t, o)
	require.NoError(t, w.Start(t.Context(), stack.SecondServer))
	one, two := w.URL(), "http://"+w.Addr(stack.SecondServer)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	type try struct {
		route
		cut  int // after how many frames; negative: after each
		half bool
	}
	var tries []try
	for _, r := range streamingRoutes() {
		frames := 8
		if r.pieces {
			frames = 16
		}
		for cut := range frames {
			tries = append(tries, try{r, cut, false})
		}
		tries = append(tries, try{r, 0, true}, try{r, 3, true}, try{r, 5, true}, try{r, -1, true}, try{r, -1, false})
	}
	queue, failed := make(chan try, len(tries)), make(chan error, len(tries))
	for _, one := range tries {
		queue <- one
	}
	close(queue)
	var mu sync.Mutex
	done := map[*streamer]string{}
	var group sync.WaitGroup
	for range 12 {
		group.Go(func() {
			for c := range queue {
				s := w.streamer(c.route, w.begin(c.route))
				var err error
				if c.cut >= 0 {
					_, err = s.read(ctx, one, c.cut, c.half)
				} else {
					for over, i := false, 0; !over && err == nil; i++ {
						over, err = s.read(ctx, []string{one, two}[i%2], len(s.frames)+1, c.half && i%2 == 0)
					}
				}
				if err == nil {
					err = s.whole(ctx, two, one)
				}
				if err != nil {
					failed <- fmt.Errorf("%s, cut at %d: %w", c.name, c.cut, err)
				}
				mu.Lock()
				done[s] = fmt.Sprintf("cut at %d, half %t", c.cut, c.half)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	close(failed)
	for err := range failed {
		require.NoError(t, err)
	}
	require.Len(t, done, len(tries))
	pieces := 0
	for s, what := range done {
		s.matches(t, w, what)
		r := runHandle{w.api, "assistant", "user", s.session}
		require.Equal(t, "done", r.status().InvocationStatus, what)
		_, words := s.told(t)
		pieces += len(words)
	}
	require.Greater(t, pieces, 100, "pieces were told")
	require.Len(t, w.modelCalls(), 3*len(tries), "nothing ran twice, and nothing was stopped")

	// Whoever goes away at once and for ever stops nothing either.
	for _, r := range streamingRoutes() {
		s := w.streamer(r, w.begin(r))
		_, err := s.read(ctx, one, 0, false)
		require.NoError(t, err)
		run := runHandle{w.api, "assistant", "user", s.session}
		w.idle(run, "w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11 w12")
	}
}

// Servers and workers are killed after each frame in turn, one of them or all, while clients of every route read. Those come back,
// at another server or when there is one again, and have all events in the end.
func TestStreamsThroughKills(t *testing.T) {
	t.Parallel()
	for name, victims := range map[string][]stack.Name{
		"server": {stack.Server}, "worker": {stack.Worker}, "server and worker": {stack.Server, stack.Worker},
		"all servers and the worker": {stack.Server, stack.SecondServer, stack.Worker},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, notes(t, "250ms", "10ms"))
			require.NoError(t, w.Start(t.Context(), stack.SecondServer))
			one, two := w.URL(), "http://"+w.Addr(stack.SecondServer)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			const frames = 7 // of a run: where it begins, three calls' events and the answer
			routes := streamingRoutes()
			for at := 1; at <= frames; at++ {
				var group sync.WaitGroup
				var all []*streamer
				reached, ends := make(chan struct{}, 1), make(chan error, len(routes))
				for _, r := range routes {
					s := w.streamer(r, w.begin(r))
					s.after = func(n int) {
						if n == at {
							select { // again if it comes back there
							case reached <- struct{}{}:
							default:
							}
						}
					}
					all = append(all, s)
					group.Go(func() { ends <- s.whole(ctx, one, two) })
				}
				select { // the first of them is there, and reads on when the kill comes
				case <-reached:
				case <-ctx.Done():
					require.NoError(t, ctx.Err(), "no client read frame %d", at)
				}
				require.NoError(t, w.Kill(victims...))
				require.NoError(t, w.Start(ctx, victims...))
				group.Wait()
				for range routes {
					require.NoError(t, <-ends)
				}
				for _, s := range all {
					s.matches(t, w, fmt.Sprintf("killed at frame %d", at))
				}
			}
		})
	}
}
