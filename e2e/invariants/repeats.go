package invariants

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// repeats: a model is asked again only while no answer is stored (I6). A request whose answer was lost with its process is
// asked again before there is one; a request that comes after, with the same conversation, must lead to an answer of its own.
func (l Log) repeats() (out []Violation) {
	type who struct{ invocation, agent string }
	type step struct {
		at     time.Time
		digest string // empty: an answer was stored
	}
	steps := map[who][]step{}
	for _, r := range l.Asked {
		if r.Invocation != "" {
			w := who{r.Invocation, r.Agent}
			steps[w] = append(steps[w], step{r.Time.Truncate(time.Microsecond), r.Digest})
		}
	}
	for _, e := range l.Events { // of all branches: what a reset has left behind was asked for too
		if w := (who{e.Invocation, e.Author}); steps[w] != nil && (e.Kind == kindModel || e.Kind == kindNotice) {
			steps[w] = append(steps[w], step{at: e.Created})
		}
	}
	for w, all := range steps {
		slices.SortStableFunc(all, func(a, b step) int {
			return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.digest, b.digest)) // what is stored comes first
		})
		var open []string
		answered := map[string]bool{}
		for _, s := range all {
			switch {
			case s.digest != "":
				if !slices.Contains(open, s.digest) {
					open = append(open, s.digest)
				}
			case len(open) > 0:
				i := max(slices.IndexFunc(open, func(d string) bool { return !answered[d] }), 0)
				answered[open[i]] = true
				open = slices.Delete(open, i, i+1)
			}
		}
		for _, digest := range open {
			if answered[digest] {
				out = append(out, Violation{"I6", fmt.Sprintf("agent %s was asked once more in invocation %s what it had answered", w.agent, w.invocation)})
			}
		}
	}
	return out
}
