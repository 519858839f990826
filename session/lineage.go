package session

import (
	"slices"
	"sync"
)

// maxLineages bounds the views that are kept of one session: those of branches that run in parallel grow side by side.
const maxLineages = 8

// cached is what is held of one session.
type cached struct {
	mu       sync.Mutex
	byID     map[string]*Record
	lineages []*lineage // the one that was used last is last
	used     int64
}

// ancestors is [Ancestors] of what is held. It walks no further than to a view that was asked for before.
func (c *cached) ancestors(heads []string) (view []*Record, missing []string) {
	for i, l := range slices.Backward(c.lineages) {
		grown, missing := l.grow(c.byID, heads)
		if len(missing) > 0 {
			return nil, missing
		}
		if grown {
			c.lineages = append(slices.Delete(c.lineages, i, i+1), l)
			return slices.Clip(l.view), nil
		}
	}
	view, missing = Ancestors(c.byID, heads)
	if len(missing) > 0 {
		return nil, missing
	}
	l := &lineage{heads: slices.Clone(heads), view: view, in: make(map[string]bool, len(view))}
	for _, r := range view {
		l.in[r.ID] = true
	}
	if len(c.lineages) == maxLineages {
		c.lineages = slices.Delete(c.lineages, 0, 1)
	}
	c.lineages = append(c.lineages, l)
	return slices.Clip(view), nil
}

// lineage is a view that was asked for, and grows as its heads get children.
type lineage struct {
	heads []string
	view  []*Record // sorted by Seq; only ever appended to, or replaced
	in    map[string]bool
}

// grow makes l the view of heads, if all of it belongs to that. Where an event is missing it changes nothing.
func (l *lineage) grow(byID map[string]*Record, heads []string) (grown bool, missing []string) {
	fresh, seen, missing := climb(byID, heads, l.in)
	if len(missing) > 0 {
		return false, missing
	}
	if slices.ContainsFunc(l.heads, func(head string) bool { return !seen[head] }) {
		return false, nil // something in l leads to none of heads
	}
	if len(fresh) > 0 && len(l.view) > 0 && fresh[0].Seq < l.view[len(l.view)-1].Seq {
		l.view = append(slices.Clip(l.view), fresh...) // a copy, since others read it
		sortBySeq(l.view)
	} else {
		l.view = append(l.view, fresh...)
	}
	for _, r := range fresh {
		l.in[r.ID] = true
	}
	l.heads = slices.Clone(heads)
	return true, nil
}
