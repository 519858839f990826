package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/session"
	"tarry/store"
)

func content(role, text string) *genai.Content {
	return &genai.Content{Role: role, Parts: []*genai.Part{{Text: text}}}
}

func said(id string, kind session.Kind, author, text string, parents ...string) session.NewEvent {
	return session.NewEvent{Kind: kind, Parents: parents, Event: session.Event{ID: id, InvocationID: inv, Author: author, Content: content("model", text)}}
}

func model(id string, parents ...string) session.NewEvent {
	return said(id, session.KindModel, theAgent, "text of "+id, parents...)
}

func eventCases() []testCase {
	return []testCase{
		{"append/returns what is stored, byte for byte", func(k *kit) {
			row := k.session(ann, "s")
			first := k.append(row, theRun, model("a"))[0]
			require.Positive(k, first.Seq)
			require.Empty(k, first.Parents)
			require.NotNil(k, first.Parents)
			require.NotZero(k, first.Timestamp)
			k.append(row, theRun, model("b", "a"))

			found, err := k.s.Events(k.ctx, row, []string{"a"})
			require.NoError(k, err)
			require.Equal(k, []*session.Record{first}, found)
			all, err := k.s.Events(k.ctx, row, nil)
			require.NoError(k, err)
			require.Equal(k, []string{"a", "b"}, ids(all))
			none, err := k.s.Events(k.ctx, row, []string{})
			require.NoError(k, err)
			require.Empty(k, none)
		}},
		{"append/an id that exists returns the stored event", func(k *kit) {
			row := k.session(ann, "s")
			first := k.append(row, theRun, model("a"))[0]
			again := said("a", session.KindModel, theAgent, "another text")
			again.Actions.StateDelta = map[string]any{"user:x": 1}
			second := k.append(row, theRun, again)[0]
			require.False(k, first.Repeated)
			require.True(k, second.Repeated)
			second.Repeated = false
			require.Equal(k, first, second)
			require.Equal(k, []string{"a"}, k.timeline(row))
			scoped, err := k.s.Scoped(k.ctx, ann)
			require.NoError(k, err)
			require.Empty(k, scoped, "a repeat applies nothing twice")
		}},
		{"append/a second answer of a model brings no calls", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, model("a"))
			records, err := k.s.Append(k.ctx, session.Append{
				Owner: row.Owner, Session: row.ID, Run: theRun,
				Events: []session.NewEvent{model("a"), said("x", session.KindResponse, theAgent, "no such tool", "a")},
				Calls:  []session.Call{{ID: "orphan", Invocation: inv, Event: "a", Agent: theAgent, Name: "tool"}},
			})
			require.NoError(k, err)
			require.Equal(k, []string{"a"}, ids(records))
			require.Equal(k, []string{"a"}, k.timeline(row))
			_, err = k.s.Call(k.ctx, row, "orphan")
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"append/an invocation that has ended takes no answer of a model", func(k *kit) {
			row := k.session(ann, "s")
			require.NoError(k, k.s.Post(k.ctx, row.Owner, row.ID, "hash", "chat", session.Message{ID: "m", Invocation: inv}))
			row, err := k.s.Session(k.ctx, row.Owner, row.ID)
			require.NoError(k, err)
			_, _, err = k.s.Take(k.ctx, row, theRun, "u", nil)
			require.NoError(k, err)
			_, err = k.s.Finish(k.ctx, row, session.Ending{
				Run: theRun, Invocation: inv, Status: "cancelled", Append: session.Append{Owner: row.Owner, Session: row.ID},
			})
			require.NoError(k, err)
			_, err = k.s.Append(k.ctx, session.Append{Owner: row.Owner, Session: row.ID, Run: theRun, Events: []session.NewEvent{model("late", "u")}})
			require.ErrorIs(k, err, session.ErrEnded)
			require.Equal(k, []string{"u"}, k.timeline(row))
		}},
		{"append/an id of another kind, author or session is a conflict", func(k *kit) {
			row, other := k.session(ann, "s"), k.session(ann, "t")
			k.append(row, theRun, model("a"))
			for name, a := range map[string]session.Append{
				"kind":    {Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{said("a", session.KindNotice, theAgent, "")}},
				"author":  {Owner: ann, Session: "s", Run: theRun, Events: []session.NewEvent{said("a", session.KindModel, "critic", "")}},
				"session": {Owner: ann, Session: "t", Run: theRun, Events: []session.NewEvent{model("x"), model("a")}},
			} {
				_, err := k.s.Append(k.ctx, a)
				require.ErrorIs(k, err, session.ErrConflict, name)
			}
			require.Equal(k, []string{"a"}, k.timeline(row))
			require.Empty(k, k.timeline(other), "nothing of the refused append is left")
		}},
		{"append/somebody else's session is not found", func(k *kit) {
			k.session(ann, "s")
			_, err := k.s.Append(k.ctx, session.Append{Owner: bob, Session: "s", Run: theRun, Events: []session.NewEvent{model("a")}})
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"append/status", func(k *kit) {
			row := k.session(ann, "s")
			_, err := k.s.Append(k.ctx, session.Append{Owner: ann, Session: "s", Run: theRun, Status: "waiting_credential"})
			require.NoError(k, err)
			require.Equal(k, "waiting_credential", k.row(ann, "s").Status)
			require.NoError(k, k.s.SetStatus(k.ctx, row, theRun, "running"))
			require.Equal(k, "running", k.row(ann, "s").Status)
		}},
		{"tips/parallel responses are all tips, the next answer joins them", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, model("m"))
			var wait sync.WaitGroup
			for i := range 8 {
				wait.Go(func() { k.append(row, theRun, model(fmt.Sprint("r", i), "m")) })
			}
			wait.Wait()
			want := []string{"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"}
			require.ElementsMatch(k, want, k.tips(row, theRun))
			k.append(row, theRun, model("n", want...))
			require.Equal(k, []string{"n"}, k.tips(row, theRun))
			require.Len(k, k.timeline(row), 10)
		}},
		{"tips/a run that was replaced does not move them", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "old", model("a"))
			k.append(row, "new", model("b", "a"))
			late := k.append(row, "old", model("late", "a"))
			require.Equal(k, "late", late[0].ID)
			require.NoError(k, k.s.SetStatus(k.ctx, row, "old", "waiting_credential"))
			require.Equal(k, []string{"a", "b"}, k.timeline(row))
			require.Empty(k, k.row(ann, "s").Status)
			require.Equal(k, []string{"b"}, k.tips(row, "new"))
		}},
		{"tips/a reset run leaves what came after its point behind", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "old", model("a"), model("b", "a"), model("c", "b"))
			k.append(row, "new", model("b2", "a"))
			require.Equal(k, []string{"b2"}, k.tips(row, "new"))
			require.Equal(k, []string{"a", "b2"}, k.timeline(row))
		}},
		{"tips/a run reset inside a batch keeps the answers of the batch", func(k *kit) {
			row := k.session(ann, "s")
			k.calls(row, "old", "m", nil, "c1", "c2", "c3")
			_, err := k.s.Append(k.ctx, answerOf(row, "old", "c1", "r1", "m"))
			require.NoError(k, err)
			_, err = k.s.Append(k.ctx, answerOf(row, "old", "c2", "r2", "m"))
			require.NoError(k, err)
			k.append(row, "old", model("lost", "r1", "r2"))
			_, err = k.s.Append(k.ctx, answerOf(row, "new", "c3", "r3", "m"))
			require.NoError(k, err)
			require.ElementsMatch(k, []string{"r1", "r2", "r3"}, k.tips(row, "new"))
		}},
		{"tips/a run that continues another keeps them", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "one", model("a"), model("r1", "a"), model("r2", "a"))
			k.append(row, "two", model("b", "r1", "r2"))
			require.Equal(k, []string{"b"}, k.tips(row, "two"))
		}},
		{"tips/a run that goes on in one branch keeps what others have said", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "one", model("a"), model("left", "a"), model("right", "a"))
			require.NoError(k, k.s.Continue(k.ctx, row, "two"))
			k.append(row, "two", model("left2", "left"))
			require.ElementsMatch(k, []string{"right", "left2"}, k.tips(row, "two"))
			require.NoError(k, k.s.Continue(k.ctx, row, "one"), "a run that was replaced says nothing")
			k.append(row, "two", model("left3", "left2"))
			require.ElementsMatch(k, []string{"right", "left3"}, k.tips(row, "two"))
		}},
		{"tips/a run reset in one branch ends where its workflow stands", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, "old", model("a"), model("left", "a"), model("right", "a"), model("lost", "left"))
			k.append(row, "new", model("left2", "left"))
			require.Equal(k, []string{"left2"}, k.tips(row, "new"), "the store cannot know of the other branch")
			tips, err := k.s.Finish(k.ctx, row, session.Ending{
				Run: "new", Invocation: "none", Status: "done", Heads: []string{"left2", "right"}, Append: session.Append{Owner: row.Owner, Session: row.ID},
			})
			require.NoError(k, err)
			require.ElementsMatch(k, []string{"left2", "right"}, tips)
			require.Equal(k, []string{"a", "left", "right", "left2"}, k.timeline(row))
		}},
		{"tips/what no run appends never replaces one", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, model("a"))
			k.append(row, "", said("p", session.KindUser, "user", "patch"))
			k.append(row, theRun, model("b", "a"))
			require.Equal(k, []string{"b"}, k.tips(row, theRun))
		}},
		{"views/a DAG, its branches and what comes after", func(k *kit) {
			row := k.session(ann, "s")
			k.append(row, theRun, model("a"), model("left", "a"), model("right", "a"), model("left2", "left"), model("join", "left2", "right"))
			views := session.NewViews(k.s, 4)
			for heads, want := range map[string][]string{
				"a": {"a"}, "left2": {"a", "left", "left2"}, "right": {"a", "right"}, "join": {"a", "left", "right", "left2", "join"},
			} {
				view, err := views.View(k.ctx, row, []string{heads})
				require.NoError(k, err)
				require.Equal(k, want, ids(view))
			}
			all, err := k.s.Timeline(k.ctx, ann, "s", 0)
			require.NoError(k, err)
			after, err := k.s.Timeline(k.ctx, ann, "s", all[2].Seq)
			require.NoError(k, err)
			require.Equal(k, []string{"left2", "join"}, ids(after))
			_, err = k.s.Timeline(k.ctx, bob, "s", 0)
			require.ErrorIs(k, err, session.ErrNotFound)
		}},
		{"views/more ids than a statement takes", func(k *kit) {
			row := k.session(ann, "s")
			var events []session.NewEvent
			var want []string
			for i := range 1203 {
				id := fmt.Sprint("e", i)
				e := model(id)
				if i > 0 {
					e.Parents = []string{want[i-1]}
				}
				events, want = append(events, e), append(want, id)
			}
			k.append(row, theRun, events...)
			found, err := k.s.Events(k.ctx, row, slices.Clone(want))
			require.NoError(k, err)
			require.Equal(k, want, ids(found))
		}},
		{"views/events of another session are not found", func(k *kit) {
			k.append(k.session(ann, "s"), theRun, model("a"))
			found, err := k.s.Events(k.ctx, k.session(bob, "s"), []string{"a"})
			require.NoError(k, err)
			require.Empty(k, found)
		}},
	}
}

func TestPathsWithSigns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "per%20cent.db", "c#.db", "what?.db"} {
		path := t.TempDir() + "/" + name
		s, err := store.Open(t.Context(), path)
		require.NoError(t, err, name)
		require.NoError(t, s.Close())
		require.FileExists(t, path)
	}
}
