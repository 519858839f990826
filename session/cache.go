package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/genai"
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
func (v *Views) View(ctx context.Context, s Session, heads []string) (view []*Record, err error) {
	err = v.lineage(ctx, s, heads, func(l *lineage) error {
		view = slices.Clip(l.view)
		return nil
	})
	return view, err
}

// Contents is [Contents] of the view of heads. What was made for an earlier part of it is not made again. It is shared:
// callers may append to it, and must not change what is in it.
func (v *Views) Contents(ctx context.Context, s Session, heads []string, reader Reader) (out []*genai.Content, err error) {
	err = v.lineage(ctx, s, heads, func(l *lineage) error {
		out, err = l.contents(reader)
		return err
	})
	return out, err
}

// Changes are the records of the view of heads that change state: what [Fold] needs of it. It is shared: callers must not
// change it.
func (v *Views) Changes(ctx context.Context, s Session, heads []string) (out []*Record, err error) {
	err = v.lineage(ctx, s, heads, func(l *lineage) error {
		out = slices.Clip(l.changes)
		return nil
	})
	return out, err
}

// lineage calls use with the view of heads, which nobody changes meanwhile.
func (v *Views) lineage(ctx context.Context, s Session, heads []string, use func(*lineage) error) error {
	c := v.session(s.WorkflowID)
	c.mu.Lock()
	defer c.mu.Unlock()
	for generation := 0; ; generation++ {
		l, missing := c.ancestors(heads)
		if len(missing) == 0 {
			return use(l)
		}
		want := missing
		if len(c.byID) == 0 || generation >= maxGenerations {
			want = nil // cold, or another process has gone on for long: all at once, not one query per generation
		}
		records, err := v.log.Events(ctx, s, want)
		if err != nil {
			return fmt.Errorf("load events: %w", err)
		}
		for _, r := range records {
			c.byID[r.ID] = r
		}
		for _, id := range missing {
			if c.byID[id] == nil {
				return fmt.Errorf("view of session %s: event %s: %w", s.ID, id, ErrNotFound)
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
