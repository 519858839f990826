package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

func sortBySeq(records []*Record) {
	slices.SortFunc(records, func(a, b *Record) int { return cmp.Compare(a.Seq, b.Seq) })
}

// Views answers views from memory where it can. It fills by missing parents: events never change, so what it holds is
// never stale. The zero value is not usable; safe for concurrent use.
type Views struct {
	log  Log
	most int

	mu       sync.Mutex
	sessions map[string]*cached
	clock    int64
}

// maxGenerations bounds the queries by which one view is filled.
const maxGenerations = 8

// NewViews caches the events of the most sessions that were used last.
func NewViews(log Log, most int) *Views {
	return &Views{log: log, most: max(most, 1), sessions: map[string]*cached{}}
}

// View returns the ancestors of heads in order of arrival. It is shared: callers must not change it.
func (v *Views) View(ctx context.Context, s Session, heads []string) ([]*Record, error) {
	c := v.session(s.WorkflowID)
	c.mu.Lock()
	defer c.mu.Unlock()
	for generation := 0; ; generation++ {
		view, missing := c.ancestors(heads)
		if len(missing) == 0 {
			return view, nil
		}
		want := missing
		if len(c.byID) == 0 || generation >= maxGenerations {
			want = nil // cold, or another process has gone on for long: all at once, not one query per generation
		}
		records, err := v.log.Events(ctx, s, want)
		if err != nil {
			return nil, fmt.Errorf("load events: %w", err)
		}
		for _, r := range records {
			c.byID[r.ID] = r
		}
		for _, id := range missing {
			if c.byID[id] == nil {
				return nil, fmt.Errorf("view of session %s: event %s: %w", s.ID, id, ErrNotFound)
			}
		}
	}
}

// Add takes up what was just stored, so that it need not be read back. A session of which nothing is held stays so: its
// next view loads all of it at once.
func (v *Views) Add(s Session, records ...*Record) {
	v.mu.Lock()
	c := v.sessions[s.WorkflowID]
	v.mu.Unlock()
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.byID) == 0 {
		return
	}
	for _, r := range records {
		c.byID[r.ID] = r
	}
}

func (v *Views) session(key string) *cached {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clock++
	c, ok := v.sessions[key]
	if !ok {
		c = &cached{byID: map[string]*Record{}}
		v.sessions[key] = c
	}
	c.used = v.clock
	if len(v.sessions) > v.most {
		v.evict()
	}
	return c
}

func (v *Views) evict() {
	oldest, at := "", v.clock
	for key, c := range v.sessions {
		if c.used < at {
			oldest, at = key, c.used
		}
	}
	delete(v.sessions, oldest)
}
