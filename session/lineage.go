package session

import (
	"slices"
	"sync"

	"google.golang.org/genai"
)

const (
	// maxLineages bounds the views that are kept of one session: those of branches that run in parallel grow side by side.
	maxLineages = 8
	// maxReaders bounds the readers of one view whose conversations are kept: an agent behind a tool is another at each call.
	maxReaders = 8
)

// cached is what is held of one session.
type cached struct {
	mu       sync.Mutex
	byID     map[string]*Record
	lineages []*lineage // the one that was used last is last
	used     int64
}

// ancestors is [Ancestors] of what is held. It walks no further than to a view that was asked for before.
func (c *cached) ancestors(heads []string) (l *lineage, missing []string) {
	for i, l := range slices.Backward(c.lineages) {
		grown, missing := l.grow(c.byID, heads)
		if len(missing) > 0 {
			return nil, missing
		}
		if grown {
			c.lineages = append(slices.Delete(c.lineages, i, i+1), l)
			return l, nil
		}
	}
	view, missing := Ancestors(c.byID, heads)
	if len(missing) > 0 {
		return nil, missing
	}
	l = &lineage{heads: slices.Clone(heads), in: make(map[string]bool, len(view))}
	l.add(view)
	if len(c.lineages) == maxLineages {
		c.lineages = slices.Delete(c.lineages, 0, 1)
	}
	c.lineages = append(c.lineages, l)
	return l, nil
}

// lineage is a view that was asked for, and grows as its heads get children.
type lineage struct {
	heads []string
	view  []*Record // sorted by Seq; only ever appended to, or replaced
	in    map[string]bool
	// changes are the records of view that change state.
	changes []*Record
	told    map[Reader]*told
}

// told is what a reader was told of the first n records of a view.
type told struct {
	n        int
	contents []*genai.Content
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
		fresh = append(slices.Clip(l.view), fresh...) // a copy, since others read it
		sortBySeq(fresh)
		l.view, l.changes, l.told = nil, nil, nil
	}
	l.add(fresh)
	l.heads = slices.Clone(heads)
	return true, nil
}

// add appends to the view.
func (l *lineage) add(records []*Record) {
	l.view = append(l.view, records...)
	for _, r := range records {
		l.in[r.ID] = true
		if len(r.Actions.StateDelta) > 0 {
			l.changes = append(l.changes, r)
		}
	}
}

// contents is [Contents] of the view. It grows with it: of a conversation in which every call has its response, what comes
// later changes nothing, unless it has a response to an earlier call. Then that is found to have no call, and all is made anew.
func (l *lineage) contents(reader Reader) ([]*genai.Content, error) {
	if reader.Include == includeNone {
		return Contents(l.view, reader)
	}
	if t := l.told[reader]; t != nil {
		more, err := Contents(l.view[t.n:], reader)
		if err == nil {
			t.n, t.contents = len(l.view), append(t.contents, more...)
			return slices.Clip(t.contents), nil
		}
		delete(l.told, reader)
	}
	all, err := Contents(l.view, reader)
	if err != nil {
		return nil, err
	}
	if l.told == nil || len(l.told) >= maxReaders {
		l.told = map[Reader]*told{}
	}
	l.told[reader] = &told{n: len(l.view), contents: all}
	return slices.Clip(all), nil
}
