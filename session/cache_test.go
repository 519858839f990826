package session_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

// fakeLog is a log of which views read events only.
type fakeLog struct {
	session.Log

	mu     sync.Mutex
	events map[string][]*session.Record
	asked  []string // "session: ids"
	fail   error
}

func (l *fakeLog) Events(_ context.Context, s session.Session, ids []string) ([]*session.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ids == nil {
		l.asked = append(l.asked, s.WorkflowID+": all")
	} else {
		slices.Sort(ids)
		l.asked = append(l.asked, fmt.Sprint(s.WorkflowID, ": ", ids))
	}
	if l.fail != nil {
		return nil, l.fail
	}
	var out []*session.Record
	for _, r := range l.events[s.WorkflowID] {
		if ids == nil || slices.Contains(ids, r.ID) {
			out = append(out, r)
		}
	}
	return out, nil
}

func (l *fakeLog) append(workflow, id string, seq int64, parents ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events[workflow] = append(l.events[workflow], &session.Record{Event: session.Event{ID: id}, Seq: seq, Parents: parents})
}

func (l *fakeLog) questions() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.asked
	l.asked = nil
	return out
}

func viewIDs(t *testing.T, v *session.Views, workflow string, heads ...string) []string {
	t.Helper()
	view, err := v.View(t.Context(), session.Session{WorkflowID: workflow, ID: workflow}, heads)
	require.NoError(t, err)
	out := []string{}
	for _, r := range view {
		out = append(out, r.ID)
	}
	return out
}

func newFakeLog() *fakeLog { return &fakeLog{events: map[string][]*session.Record{}} }

func TestViewsFillByMissingParents(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	log.append("w", "a", 1)
	log.append("w", "b", 2, "a")
	views := session.NewViews(log, 2)
	require.Equal(t, []string{"a", "b"}, viewIDs(t, views, "w", "b"))
	require.Equal(t, []string{"w: all"}, log.questions(), "cold: all at once")
	require.Equal(t, []string{"a"}, viewIDs(t, views, "w", "a"))
	require.Empty(t, log.questions(), "events never change")

	// c commits later than d, which has the greater number: a watermark would miss it.
	log.append("w", "d", 4, "c")
	log.append("w", "c", 3, "b")
	require.Equal(t, []string{"a", "b", "c", "d"}, viewIDs(t, views, "w", "d"))
	require.Equal(t, []string{"w: [d]", "w: [c]"}, log.questions())
	require.Empty(t, viewIDs(t, views, "w"))
	require.Equal(t, []string{"a", "b", "c", "d"}, viewIDs(t, views, "w", "c", "d", "d"))
}

func TestViewsMissingEvent(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	log.append("w", "b", 2, "lost")
	views := session.NewViews(log, 2)
	for _, heads := range [][]string{{"b"}, {"unknown"}} {
		_, err := views.View(t.Context(), session.Session{WorkflowID: "w"}, heads)
		require.ErrorIs(t, err, session.ErrNotFound)
	}
	log.append("w", "lost", 1)
	require.Equal(t, []string{"lost", "b"}, viewIDs(t, views, "w", "b"), "it is found once it is there")
}

func TestViewsErrorIsNotKept(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	log.append("w", "a", 1)
	log.fail = errors.New("database is down")
	views := session.NewViews(log, 2)
	_, err := views.View(t.Context(), session.Session{WorkflowID: "w"}, []string{"a"})
	require.ErrorIs(t, err, log.fail)
	log.fail = nil
	require.Equal(t, []string{"a"}, viewIDs(t, views, "w", "a"))
}

func TestViewsEviction(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	for _, w := range []string{"w1", "w2", "w3"} {
		log.append(w, "e-"+w, 1)
	}
	views := session.NewViews(log, 2)
	for _, w := range []string{"w1", "w2", "w1", "w3"} { // w2 is the one that was used longest ago
		viewIDs(t, views, w, "e-"+w)
	}
	log.questions()
	viewIDs(t, views, "w1", "e-w1")
	viewIDs(t, views, "w3", "e-w3")
	require.Empty(t, log.questions())
	viewIDs(t, views, "w2", "e-w2")
	require.Equal(t, []string{"w2: all"}, log.questions())
}

func TestViewsConcurrent(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	const n = 50
	for _, w := range []string{"w1", "w2", "w3"} {
		log.append(w, w+"-0", 1)
		for i := 1; i < n; i++ {
			log.append(w, fmt.Sprint(w, "-", i), int64(i+1), fmt.Sprint(w, "-", i-1))
		}
	}
	views := session.NewViews(log, 2) // one too few: they evict each other
	var wait sync.WaitGroup
	for g := range 12 {
		wait.Go(func() {
			w := fmt.Sprint("w", 1+g%3)
			for i := range n {
				view, err := views.View(t.Context(), session.Session{WorkflowID: w}, []string{fmt.Sprint(w, "-", i)})
				if err != nil || len(view) != i+1 {
					t.Errorf("view of %d: %d events, %v", i, len(view), err)
				}
			}
		})
	}
	wait.Wait()
}

func TestAncestors(t *testing.T) {
	t.Parallel()
	byID := map[string]*session.Record{}
	for i, e := range []struct {
		id      string
		parents []string
	}{{"a", nil}, {"left", []string{"a"}}, {"right", []string{"a"}}, {"join", []string{"left", "right"}}, {"orphan", []string{"lost1", "lost2"}}} {
		byID[e.id] = &session.Record{Event: session.Event{ID: e.id}, Seq: int64(i), Parents: e.parents}
	}
	view, missing := session.Ancestors(byID, []string{"join"})
	require.Len(t, view, 4)
	require.Empty(t, missing)
	require.True(t, slices.IsSortedFunc(view, func(a, b *session.Record) int { return int(a.Seq - b.Seq) }))
	view, missing = session.Ancestors(byID, []string{"orphan", "right", "nobody"})
	require.Len(t, view, 3)
	require.ElementsMatch(t, []string{"lost1", "lost2", "nobody"}, missing)
}

// Whatever was asked for before, a view is the ancestors of its heads, and one that was handed out stays as it was.
func TestViewsGrow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a repeatable sequence, not a secret
		log, byID := newFakeLog(), map[string]*session.Record{}
		const branches, events = 3, 60
		seqs := random.Perm(events) // arrival is another order than descent
		tips := make([][]string, branches)
		views := session.NewViews(log, 1)
		type handed struct{ view, copied []*session.Record }
		var before []handed
		for i := range events {
			b := random.IntN(branches)
			id := fmt.Sprint("e", i)
			log.append("w", id, int64(seqs[i]/4*4+i%4), tips[b]...)
			byID[id] = log.events["w"][i]
			switch random.IntN(8) {
			case 0: // two in a row that know nothing of each other
				tips[b] = append(tips[b], id)
			case 1: // a join
				tips[b] = append([]string{id}, tips[random.IntN(branches)]...)
			default:
				tips[b] = []string{id}
			}
			heads := tips[random.IntN(branches)]
			if random.IntN(4) == 0 {
				heads = []string{fmt.Sprint("e", random.IntN(i+1))} // back to an earlier one
			}
			want, missing := session.Ancestors(byID, heads)
			require.Empty(t, missing)
			got, err := views.View(t.Context(), session.Session{WorkflowID: "w"}, heads)
			require.NoError(t, err)
			require.ElementsMatch(t, ids(want), ids(got), "seed %d, event %d", seed, i)
			require.True(t, slices.IsSortedFunc(got, func(a, b *session.Record) int { return int(a.Seq - b.Seq) }))
			before = append(before, handed{got, slices.Clone(got)})
		}
		for _, h := range before {
			require.Equal(t, ids(h.copied), ids(h.view))
		}
	}
}

func ids(view []*session.Record) []string {
	out := []string{}
	for _, r := range view {
		out = append(out, r.ID)
	}
	return out
}

func TestViewsTakeUpWhatWasStored(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	views := session.NewViews(log, 1)
	store := func(id string, seq int64, parents ...string) {
		log.append("w", id, seq, parents...)
		views.Add(session.Session{WorkflowID: "w"}, log.events["w"][len(log.events["w"])-1])
	}
	store("a", 1)
	store("b", 2, "a")
	require.Equal(t, []string{"a", "b"}, viewIDs(t, views, "w", "b"))
	require.Equal(t, []string{"w: all"}, log.questions(), "of a session that is not held nothing is taken up: its view would be filled bit by bit")
	store("c", 3, "b")
	require.Equal(t, []string{"a", "b", "c"}, viewIDs(t, views, "w", "c"))
	require.Empty(t, log.questions())

	for i := range int64(100) { // another process goes on
		log.append("w", fmt.Sprint("d", i), 4+i, log.events["w"][len(log.events["w"])-1].ID)
	}
	require.Len(t, viewIDs(t, views, "w", "d99"), 103)
	require.LessOrEqual(t, len(log.questions()), 9)
}
