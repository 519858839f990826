package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

func piece(invocation, text string) session.Event {
	return session.Event{ID: "piece-" + text, InvocationID: invocation, Author: theAgent, Partial: true, Content: content("model", text)}
}

func bodiesOf(t require.TestingT, all []session.Partial, err error) (out []string) {
	require.NoError(t, err)
	for _, p := range all {
		out = append(out, p.Of+" "+string(p.Body))
	}
	return out
}

func partialCases() []testCase {
	return []testCase{
		{"partials/are listed in order until the whole is stored", func(k *kit) {
			row := k.session(ann, "s")
			other := k.session(bob, "s")
			for _, text := range []string{"one", "two"} {
				require.NoError(k, k.s.AddPartial(k.ctx, row, "a", piece(inv, text)))
			}
			require.NoError(k, k.s.AddPartial(k.ctx, row, "b", piece(inv, "other branch")))
			all, err := k.s.Partials(k.ctx, row, 0)
			require.NoError(k, err)
			require.Len(k, all, 3)
			require.Equal(k, []string{"a", "a", "b"}, []string{all[0].Of, all[1].Of, all[2].Of})
			require.Equal(k, inv, all[0].Invocation)
			require.Contains(k, string(all[0].Body), `"text":"one"`)
			require.Contains(k, string(all[0].Body), `"partial":true`)
			rest, err := k.s.Partials(k.ctx, row, all[1].Seq)
			require.NoError(k, err)
			require.Equal(k, all[2:], rest)
			none, err := k.s.Partials(k.ctx, other, 0)
			require.Empty(k, bodiesOf(k, none, err))

			_, err = k.s.Append(k.ctx, session.Append{Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{model("a")}, Whole: "a"})
			require.NoError(k, err)
			require.NoError(k, k.s.AddPartial(k.ctx, row, "a", piece(inv, "late")), "of an attempt that was cut off")
			rest, err = k.s.Partials(k.ctx, row, 0)
			require.NoError(k, err)
			require.Equal(k, all[2:], rest)

			require.NoError(k, k.s.Delete(k.ctx, ann, "s"))
			require.NoError(k, k.s.AddPartial(k.ctx, row, "b", piece(inv, "late")), "of a session that is gone")
			rest, err = k.s.Partials(k.ctx, row, 0)
			require.Empty(k, bodiesOf(k, rest, err))
		}},
		{"partials/go by age", func(k *kit) {
			row := k.session(ann, "s")
			require.NoError(k, k.s.AddPartial(k.ctx, row, "a", piece(inv, "old")))
			k.clock.advance(31 * time.Minute)
			require.NoError(k, k.s.AddPartial(k.ctx, row, "b", piece(inv, "new")))
			n, err := k.s.Purge(k.ctx, 24*time.Hour)
			require.NoError(k, err)
			require.Equal(k, 1, n)
			all, err := k.s.Partials(k.ctx, row, 0)
			require.NoError(k, err)
			require.Len(k, all, 1)
			require.Equal(k, "b", all[0].Of)
		}},
		{"partials/go with the invocation, and come only where they are asked for", func(k *kit) {
			row := k.session(ann, "s")
			post := func(id string, streaming bool) session.Session {
				m := session.Message{ID: id, Invocation: "e-" + id, Event: session.Event{Author: "user", Content: content("user", id)}, Streaming: streaming}
				require.NoError(k, k.s.Post(k.ctx, ann, "s", "hash", "chat", m))
				r, _, err := k.s.Take(k.ctx, row, theRun, "take-"+id, nil)
				require.NoError(k, err)
				require.NotNil(k, r)
				found, err := k.s.ByWorkflow(k.ctx, row.WorkflowID)
				require.NoError(k, err)
				require.Equal(k, streaming, found.Streaming)
				return found
			}
			row = post("m1", true)
			require.NoError(k, k.s.AddPartial(k.ctx, row, "a", piece("e-m1", "cut off")))
			_, err := k.s.Finish(k.ctx, row, session.Ending{Run: theRun, Invocation: "e-m1", Status: "cancelled", Append: session.Append{Owner: ann, Session: "s"}})
			require.NoError(k, err)
			all, err := k.s.Partials(k.ctx, row, 0)
			require.Empty(k, bodiesOf(k, all, err))
			post("m2", false)
		}},
		{"post/the same message again changes nothing, another of its id is refused", func(k *kit) {
			k.session(ann, "s")
			k.session(bob, "s")
			m := session.Message{ID: "m1", Invocation: "e-m1", Event: session.Event{Author: "user", Content: content("user", "hi")}}
			post := func(m session.Message) error { return k.s.Post(k.ctx, ann, "s", "hash", "chat", m) }
			require.NoError(k, post(m))
			require.NoError(k, post(m))
			other := m
			other.Event.Content = content("user", "something else")
			require.ErrorIs(k, post(other), session.ErrRepeated)
			require.ErrorIs(k, k.s.Post(k.ctx, bob, "s", "hash", "chat", m), session.ErrRepeated, "an id is one session's")
			row, err := k.s.Session(k.ctx, ann, "s")
			require.NoError(k, err)
			first, _, err := k.s.Take(k.ctx, row, theRun, "take-1", nil)
			require.NoError(k, err)
			require.NotNil(k, first)
			require.NoError(k, post(m), "also when it was taken")
			next, _, err := k.s.Take(k.ctx, row, theRun, "take-2", nil)
			require.NoError(k, err)
			require.Nil(k, next)
		}},
	}
}

// A row of partials is only read with the session that it belongs to.
func TestPartialsTableIsSmall(t *testing.T) {
	t.Parallel()
	k := newKit(t, dialects()["sqlite"](t))
	row := k.session(ann, "s")
	before := k.s.Statements()
	require.NoError(t, k.s.AddPartial(t.Context(), row, "a", piece(inv, "x")))
	require.LessOrEqual(t, k.s.Statements()-before, int64(2))
}
