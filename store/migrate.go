package store

import (
	"bytes"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"testing/fstest"
	"text/template"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrate applies what is missing. Several processes may start at once: they take turns by the dialect's lock, or, where there
// is none, the database lets one of them write and the others find the work done when they try again.
func (s *Store) migrate(ctx context.Context, db *sql.DB) error {
	files, err := s.migrations()
	if err != nil {
		return err
	}
	options := []goose.ProviderOption{goose.WithDisableGlobalRegistry(true)}
	if s.d.migrating != nil {
		options = append(options, goose.WithSessionLocker(s.d.migrating))
	}
	provider, err := goose.NewProvider(goose.Dialect(s.d.name), db, files, options...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	const tries = 20
	for i := range tries {
		if _, err = provider.Up(ctx); err == nil {
			return nil
		}
		if s.d.migrating != nil {
			return fmt.Errorf("migrate: %w", denied(err))
		}
		wait := time.NewTimer(time.Duration(i+1) * 50 * time.Millisecond)
		select {
		case <-ctx.Done():
			wait.Stop()
			return fmt.Errorf("migrate: %w", errors.Join(err, ctx.Err()))
		case <-wait.C:
		}
	}
	return fmt.Errorf("migrate: %w", err)
}

// migrations renders the one SQL text for the dialect. What the text writes out for each is in {{if postgres}}: bodies of
// triggers, of which no two databases have the same.
func (s *Store) migrations() (fs.FS, error) {
	out := fstest.MapFS{}
	entries, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	for _, e := range entries {
		body, err := migrationFiles.ReadFile("migrations/" + e.Name())
		if err != nil {
			return nil, fmt.Errorf("read migrations: %w", err)
		}
		text, err := s.d.render(string(body))
		if err != nil {
			return nil, fmt.Errorf("render migration %s: %w", e.Name(), err)
		}
		out[e.Name()] = &fstest.MapFile{Data: text}
	}
	return out, nil
}

func (d dialect) render(text string) ([]byte, error) {
	parsed, err := template.New("").Funcs(template.FuncMap{
		"serial":   func() string { return d.serial },
		"postgres": func() bool { return d.name == "postgres" },
	}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, nil); err != nil {
		return nil, fmt.Errorf("execute: %w", err)
	}
	return out.Bytes(), nil
}
