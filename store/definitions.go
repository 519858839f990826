package store

import (
	"context"
	"fmt"

	"tarry/agent"
	"tarry/session"
)

// Publish makes d the current definition of its app. Sessions that run stay with the one they started with.
func (s *Store) Publish(ctx context.Context, d *agent.Definition) error {
	hash, err := d.Hash()
	if err != nil {
		return fmt.Errorf("publish: %w", err)
	}
	body, err := encode(d)
	if err != nil {
		return err
	}
	return s.tx(ctx, func(c *conn) error {
		if _, err := c.exec(`INSERT INTO definitions (hash, app, body, created) VALUES (?, ?, ?, ?) ON CONFLICT (hash) DO NOTHING`, hash, d.App, body, c.now); err != nil {
			return err
		}
		_, err := c.exec(`INSERT INTO apps (app, hash, published) VALUES (?, ?, ?)
			ON CONFLICT (app) DO UPDATE SET hash = excluded.hash, published = excluded.published`, d.App, hash, c.now)
		return err
	})
}

func scanDefinition(scan func(...any) error) (*agent.Definition, error) {
	var body string
	if err := scan(&body); err != nil {
		return nil, err
	}
	var d agent.Definition
	return &d, decode(body, &d)
}

// Definition returns a published definition by its hash.
func (s *Store) Definition(ctx context.Context, hash string) (*agent.Definition, error) {
	return first(collect(s.read(ctx), `SELECT body FROM definitions WHERE hash = ?`, []any{hash}, scanDefinition))
}

// App returns the current definition of an app.
func (s *Store) App(ctx context.Context, app string) (*agent.Definition, error) {
	return first(collect(s.read(ctx), `SELECT d.body FROM apps a JOIN definitions d ON d.hash = a.hash WHERE a.app = ?`, []any{app}, scanDefinition))
}

// Apps lists the current definitions, by name.
func (s *Store) Apps(ctx context.Context) ([]*agent.Definition, error) {
	return collect(s.read(ctx), `SELECT d.body FROM apps a JOIN definitions d ON d.hash = a.hash ORDER BY a.app`, nil, scanDefinition)
}

func first[T any](found []*T, err error) (*T, error) {
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, session.ErrNotFound
	}
	return found[0], nil
}

// SaveListing stores what a toolset offers under id, once.
func (s *Store) SaveListing(ctx context.Context, row session.Session, id, toolset string, body []byte) error {
	c, err := s.timed(ctx)
	if err != nil {
		return err
	}
	_, err = c.exec(`INSERT INTO listings (id, workflow_id, toolset, body, created) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING`,
		id, row.WorkflowID, toolset, string(body), c.now)
	return err
}

// Listing returns a stored listing and the toolset that it is of.
func (s *Store) Listing(ctx context.Context, row session.Session, id string) (toolset string, body []byte, err error) {
	var text string
	err = s.read(ctx).get(`SELECT toolset, body FROM listings WHERE workflow_id = ? AND id = ?`, []any{row.WorkflowID, id}, []any{&toolset, &text})
	if missing(err) {
		return "", nil, session.ErrNotFound
	}
	return toolset, []byte(text), err
}

// Check returns the value stored under name, storing what create makes if there is none. Two processes get the same.
func (s *Store) Check(ctx context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	var value []byte
	err := s.tx(ctx, func(c *conn) error {
		err := c.get(`SELECT value FROM meta WHERE name = ?`, []any{name}, []any{&value})
		if !missing(err) {
			return err
		}
		if value, err = create(); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
		n, err := c.exec(`INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, name, value)
		if err != nil || n == 1 {
			return err
		}
		return c.get(`SELECT value FROM meta WHERE name = ?`, []any{name}, []any{&value}) // another was first
	})
	return value, err
}
