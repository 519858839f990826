package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/session"
)

// applyScoped writes app: and user: keys where other sessions see them.
func (c *conn) applyScoped(owner agent.Owner, delta map[string]any) error {
	for _, key := range slices.Sorted(maps.Keys(delta)) { // one order for all, so that no two wait for each other
		value := delta[key]
		var usr string
		switch {
		case strings.HasPrefix(key, session.ScopeApp):
		case strings.HasPrefix(key, session.ScopeUser):
			usr = owner.User
		default:
			continue
		}
		if value == nil {
			if _, err := c.exec(`DELETE FROM scoped WHERE app = ? AND usr = ? AND name = ?`, owner.App, usr, key); err != nil {
				return err
			}
			continue
		}
		body, err := encode(value)
		if err != nil {
			return err
		}
		if _, err := c.exec(`INSERT INTO scoped (app, usr, name, value) VALUES (?, ?, ?, ?)
			ON CONFLICT (app, usr, name) DO UPDATE SET value = excluded.value`, owner.App, usr, key, body); err != nil {
			return err
		}
	}
	return nil
}

// Scoped implements [session.Log].
func (s *Store) Scoped(ctx context.Context, owner agent.Owner) (map[string]any, error) {
	type pair struct {
		name  string
		value any
	}
	pairs, err := collect(s.read(ctx), `SELECT name, value FROM scoped WHERE app = ? AND usr IN ('', ?)`, []any{owner.App, owner.User},
		func(scan func(...any) error) (p pair, err error) {
			var body string
			if err = scan(&p.name, &body); err != nil {
				return p, err
			}
			return p, decode(body, &p.value)
		})
	if err != nil {
		return nil, err
	}
	out := make(map[string]any, len(pairs))
	for _, p := range pairs {
		out[p.name] = p.value
	}
	return out, nil
}

// State implements [session.Log].
func (s *Store) State(ctx context.Context, owner agent.Owner, id string) (map[string]any, error) {
	row, err := s.Session(ctx, owner, id)
	if err != nil {
		return nil, err
	}
	view, err := s.Timeline(ctx, owner, id, 0)
	if err != nil {
		return nil, err
	}
	scoped, err := s.Scoped(ctx, owner)
	if err != nil {
		return nil, err
	}
	return session.Fold(row.Initial, scoped, view, row.Invocation), nil
}
