package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

// long is a long-running call that waits for its result and showed nothing yet: its request has the call's id, its call is made by the event m.
func (k *kit) long(row session.Session, call string) {
	k.Helper()
	n := auth.Need{Type: auth.TypeResult, Slot: auth.ResultSlot(row.Owner, call), Tool: "order"}
	const event = "m"
	a, r := question(row, call, call, n, event)
	out, err := k.s.Ask(k.ctx, a, r, func(auth.Request) (session.NewEvent, error) {
		return session.NewEvent{Parents: []string{event}}, nil // nothing to show
	})
	require.NoError(k, err)
	require.Equal(k, event, out.Event, "the model's event says it all")
}

func (k *kit) interim(call string, n int) auth.Status {
	k.Helper()
	status, err := k.s.Interim(k.ctx, call, anyone, map[string]any{"n": n})
	require.NoError(k, err)
	return status
}

func (k *kit) shows(row session.Session) (ids []string) {
	k.Helper()
	view, err := k.s.Timeline(k.ctx, row.Owner, row.ID, 0)
	require.NoError(k, err)
	for _, r := range view {
		if r.Kind == session.KindInterim {
			ids = append(ids, r.Responses()[0].ID)
		} else {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// Interim results of a long-running call stand in the session behind its call, and are no answers.
func interimCases() []testCase {
	return []testCase{
		{"interim/beside another call", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c", "d")
			k.long(row, "c")
			k.long(row, "d")
			for _, call := range []string{"c", "d", "c"} {
				require.Equal(k, auth.StatusPending, k.interim(call, 1))
				require.Equal(k, auth.StatusPending, k.interim(call, 1), "what is sent twice is stored once")
			}
			require.Equal(k, []string{"m", "c", "d"}, k.shows(row))
			require.Equal(k, auth.StatusPending, k.interim("c", 2))
			require.Equal(k, []string{"m", "c", "d", "c"}, k.shows(row))
			c, err := k.s.Call(k.ctx, row, "c")
			require.NoError(k, err)
			require.Empty(k, c.Answer)
			require.False(k, c.Started)
			_, err = k.s.Append(k.ctx, answerOf(row, theRun, "c", "answer-c", c.Asking))
			require.NoError(k, err)
			require.Equal(k, []string{"m", "c", "d", "c", "answer-c"}, k.shows(row), "the run goes on behind what was shown")
			_, err = k.s.AnswerInput(k.ctx, "c", anyone, []byte("sealed"), auth.StatusGranted)
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, k.interim("c", 3), "too late")
			require.Equal(k, []string{"m", "c", "d", "c", "answer-c"}, k.shows(row))
		}},
		{"interim/more than one call may show", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c", "d")
			k.long(row, "c")
			k.long(row, "d")
			const most = 500
			for n := range most {
				require.Equal(k, auth.StatusPending, k.interim("c", n))
			}
			var full *auth.AnswerError
			_, err := k.s.Interim(k.ctx, "c", anyone, map[string]any{"n": most})
			require.ErrorAs(k, err, &full)
			require.Contains(k, full.Text, "send the final one")
			require.Equal(k, auth.StatusPending, k.interim("c", most-1), "the last one, once more")
			require.Len(k, k.shows(row), 1+most)

			large := strings.Repeat("x", 1<<20)
			for n := range 3 {
				_, err = k.s.Interim(k.ctx, "d", anyone, map[string]any{"n": n, "large": large})
				require.NoError(k, err)
			}
			_, err = k.s.Interim(k.ctx, "d", anyone, map[string]any{"n": 3, "large": large})
			require.ErrorAs(k, err, &full)
			status, err := k.s.AnswerInput(k.ctx, "d", anyone, []byte("sealed"), auth.StatusGranted)
			require.NoError(k, err)
			require.Equal(k, auth.StatusGranted, status, "the final one counts")
		}},
		{"interim/of others, and other requests", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c")
			k.long(row, "c")
			k.ask(row, "", "q", auth.Need{Type: auth.TypeQuestion, Slot: auth.QuestionSlot(ann, "x")})
			_, err := k.s.Interim(k.ctx, "c", func(agent.Owner) bool { return false }, map[string]any{})
			require.ErrorIs(k, err, oauth.ErrNotFound)
			_, err = k.s.Interim(k.ctx, "unknown", anyone, map[string]any{})
			require.ErrorIs(k, err, auth.ErrNoRequest)
			_, err = k.s.Interim(k.ctx, "q", anyone, map[string]any{})
			require.ErrorIs(k, err, oauth.ErrConflict)
		}},
		{"interim/of a call that a reset has left behind", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, said("user", session.KindUser, agent.UserAuthor, "go"))
			k.calls(row, theRun, "m", []string{"user"}, "c")
			k.long(row, "c")
			k.calls(row, "run-2", "m2", []string{"user"}, "c2")
			require.Equal(k, auth.StatusCancelled, k.interim("c", 1))
			require.Equal(k, []string{"user", "m2"}, k.shows(row), "it does not come back")
		}},
		{"interim/one result of many that come at once", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c")
			k.long(row, "c")
			const many = 6
			var group sync.WaitGroup
			handles := make([]auth.Status, many)
			for i := range many {
				s := k.handle()
				group.Go(func() {
					status := auth.StatusGranted
					if i%2 == 0 {
						status = auth.StatusDenied
					}
					out, err := s.AnswerInput(k.ctx, "c", anyone, fmt.Append(nil, i), status)
					if err == nil || errors.Is(err, auth.ErrClosed) {
						handles[i] = out
					}
				})
			}
			group.Wait()
			for _, status := range handles {
				require.Equal(k, handles[0], status, "all hear how it ended")
			}
			n, err := k.s.Outstanding(k.ctx)
			require.NoError(k, err)
			require.Equal(k, 1, n, "one message to the run")
		}},
		{"interim/withdrawn though another call waits at the same event", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, theRun, "m", nil, "c", "d")
			k.long(row, "c")
			k.long(row, "d")
			closed, err := k.s.WithdrawRequest(k.ctx, row, "c")
			require.NoError(k, err)
			require.True(k, closed)
			require.Equal(k, auth.StatusPending, k.request("d").Status)
		}},
		{"interim/answers in the order of the questions", func(k *kit) {
			row := k.session(ann, "s")
			n := auth.Need{Type: auth.TypeQuestion, Slot: auth.QuestionSlot(ann, "c")}
			for _, id := range []string{"z", "a", "m"} {
				k.ask(row, "", id, n)
				_, err := k.s.AnswerInput(k.ctx, id, anyone, []byte(id), auth.StatusGranted)
				require.NoError(k, err)
			}
			all, err := k.s.AllAnswered(k.ctx, row, n.Slot)
			require.NoError(k, err)
			var ids []string
			for _, r := range all {
				ids = append(ids, r.ID)
			}
			require.Equal(k, []string{"z", "a", "m"}, ids)
			other := k.session(ann, "t")
			all, err = k.s.AllAnswered(k.ctx, other, n.Slot)
			require.NoError(k, err)
			require.Empty(k, all)
		}},
	}
}
