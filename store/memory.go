package store

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/session"
)

var _ session.Memory = (*Store)(nil)

// Remember implements [session.Memory].
func (s *Store) Remember(ctx context.Context, owner agent.Owner, id string) error {
	return s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byOwner, owner.App, owner.User, id)
		if err != nil {
			return err
		}
		all, err := c.events(row.WorkflowID, nil)
		if err != nil {
			return err
		}
		view, _ := session.Ancestors(index(all), at.tips)
		if err := c.lockAsker(owner); err != nil {
			return err
		}
		if _, err := c.exec(`DELETE FROM memories WHERE workflow_id = ?`, row.WorkflowID); err != nil {
			return err
		}
		kept := newest(session.Memories(view), session.MaxMemory)
		for chunk := range slices.Chunk(kept, 50) {
			if err := c.insertMemories(row, chunk); err != nil {
				return err
			}
		}
		return c.forget(owner)
	})
}

// newest are the last of all that have no more than most bytes together.
func newest(all []session.MemoryEntry, most int) []session.MemoryEntry {
	size := 0
	for i, m := range slices.Backward(all) {
		if size += len(m.Text); size > most {
			return all[i+1:]
		}
	}
	return all
}

func (c *conn) insertMemories(row session.Session, all []session.MemoryEntry) error {
	var args []any
	for _, m := range all {
		args = append(args, row.Owner.App, row.Owner.User, row.WorkflowID, m.Event, m.Author, int64(math.Round(m.Time*1e6)), m.Text, session.Words(m.Text), len(m.Text))
	}
	marks := strings.TrimSuffix(strings.Repeat("(?, ?, ?, ?, ?, ?, ?, ?, ?), ", len(all)), ", ")
	_, err := c.exec(`INSERT INTO memories (app, usr, workflow_id, event, author, said, body, words, size) VALUES `+marks, args...)
	return err
}

// forget drops what was added first, until what is left is no more than is kept.
func (c *conn) forget(owner agent.Owner) error {
	_, err := c.exec(`DELETE FROM memories WHERE app = ? AND usr = ? AND seq <= (SELECT COALESCE(MAX(seq), 0) FROM (
		SELECT seq, SUM(size) OVER (ORDER BY seq DESC) AS total FROM memories WHERE app = ? AND usr = ?) AS m WHERE total > ?)`,
		owner.App, owner.User, owner.App, owner.User, session.MaxMemory)
	return err
}

// Recall implements [session.Memory]. Words are compared here: databases have ideas of their own about letters.
func (s *Store) Recall(ctx context.Context, owner agent.Owner, query string) ([]session.MemoryEntry, error) {
	q := session.NewQuery(query)
	if q.Empty() {
		return []session.MemoryEntry{}, nil
	}
	type hit struct {
		seq     int64
		matches int
	}
	c := s.read(ctx)
	hits, err := collect(c, `SELECT seq, words FROM memories WHERE app = ? AND usr = ? ORDER BY seq`, []any{owner.App, owner.User},
		func(scan func(...any) error) (h hit, err error) {
			var words string
			err = scan(&h.seq, &words)
			h.matches = q.Matches(words)
			return h, err
		})
	if err != nil {
		return nil, err
	}
	hits = slices.DeleteFunc(hits, func(h hit) bool { return h.matches == 0 })
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.matches, a.matches) })
	out := []session.MemoryEntry{}
	for _, h := range hits[:min(len(hits), session.MaxMemories)] {
		found, err := collect(c, `SELECT event, author, said, body FROM memories WHERE seq = ? AND app = ? AND usr = ?`, []any{h.seq, owner.App, owner.User},
			func(scan func(...any) error) (m session.MemoryEntry, err error) {
				var said int64
				err = scan(&m.Event, &m.Author, &said, &m.Text)
				m.Time = float64(said) / 1e6
				return m, err
			})
		if err != nil {
			return nil, err
		}
		out = append(out, found...) // none, if it was forgotten meanwhile
	}
	return out, nil
}
