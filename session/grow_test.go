package session_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

// Whatever was asked for before, a reader is told what one is who reads the view for the first time, and state is the same.
func TestContentsGrow(t *testing.T) {
	t.Parallel()
	refused, told := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a repeatable sequence, not a secret
		c, log := &conversation{}, newFakeLog()
		views := session.NewViews(log, 1)
		w := session.Session{WorkflowID: "w", ID: "w"}
		var heads []string
		var open []asked
		for i := range 40 {
			open = say(c, random, open, i)
			r := c.records[i]
			r.Parents = heads
			if random.IntN(3) == 0 {
				r.Actions.StateDelta = map[string]any{fmt.Sprint("k", random.IntN(4)): i}
			}
			heads = []string{r.ID}
			log.events["w"] = c.records
			if random.IntN(3) == 0 {
				continue // the view grows by more than one
			}
			reader := session.Reader{Agent: pick(random, "writer", "critic"), Branch: pick(random, "", "fork.left"), Include: pick(random, "", "", "none")}
			want, wanted := session.Contents(c.records, reader)
			got, err := views.Contents(t.Context(), w, heads, reader)
			if wanted != nil {
				require.ErrorIs(t, err, session.ErrUnanswered, "seed %d, event %d", seed, i)
				refused++
				continue
			}
			require.NoError(t, err, "seed %d, event %d", seed, i)
			require.Len(t, got, len(want))
			for j := range want {
				require.Equal(t, want[j], got[j], "seed %d, event %d, content %d", seed, i, j)
			}
			told++
			changes, err := views.Changes(t.Context(), w, heads)
			require.NoError(t, err)
			require.Equal(t, session.Fold(nil, nil, c.records, "i"), session.Fold(nil, nil, changes, "i"))
			_ = append(got, nil) // callers may, and nobody else sees it
		}
	}
	require.Greater(t, told, 500)
	require.Greater(t, refused, 100)
}

func pick(random *rand.Rand, of ...string) string { return of[random.IntN(len(of))] }

// asked is a call that waits for a response.
type asked struct{ author, branch, id string }

// say adds an event of any kind. Calls get their responses early, late, twice, from agents and from people.
func say(c *conversation, random *rand.Rand, open []asked, i int) []asked {
	who, branch := pick(random, "writer", "writer", "critic"), pick(random, "", "", "fork.left", "fork.right")
	switch kind := random.IntN(10); {
	case kind < 2:
		id := fmt.Sprint("c", i)
		c.add(who, branch, call(id, "search"))
		return append(open, asked{who, branch, id})
	case kind < 6 && len(open) > 0:
		at := random.IntN(len(open))
		of := open[at]
		if random.IntN(6) == 0 {
			of.author = "user"
		}
		c.add(of.author, of.branch, result(of.id, "search", "n", i))
		if random.IntN(5) > 0 { // else it gets another one
			open = slices.Delete(open, at, at+1)
		}
	case kind == 6:
		c.add("user", "", text(fmt.Sprint("more ", i)))
	case kind == 7:
		c.add(who, branch, text("failed")).Kind = session.KindNotice
	default:
		c.add(who, branch, text(fmt.Sprint("word ", i)))
	}
	return open
}
