package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

// old makes a database as the first release left it: its migration, and rows of a person who is asked and of one who has
// logged in.
func old(t *testing.T, path string, statements ...string) {
	t.Helper()
	body, err := os.ReadFile("migrations/00001_spine.sql")
	require.NoError(t, err)
	up, _, _ := strings.Cut(string(body), "-- +goose Down")
	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	for _, text := range append([]string{
		strings.ReplaceAll(up, "{{serial}}", "INTEGER PRIMARY KEY AUTOINCREMENT"),
		`CREATE TABLE goose_db_version (id INTEGER PRIMARY KEY AUTOINCREMENT, version_id INTEGER NOT NULL, is_applied INTEGER NOT NULL, tstamp TIMESTAMP DEFAULT (datetime('now')))`,
		`INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1), (1, 1)`,
	}, statements...) {
		_, err := db.ExecContext(t.Context(), text)
		require.NoError(t, err)
	}
}

const (
	oldNeed = `{"slot":{"owner":{"app":"planner","user":"ann"},"issuer":"https://id.example","resource":"https://mcp.example/mcp","client":"dynamic"},` +
		`"scopes":["read"],"key":"mail","type":"mcp","provider":{"issuer":"https://id.example","authorization_endpoint":"https://id.example/auth","token_endpoint":"https://id.example/token","discovered":true},"client":{}}`
	oldGrant = `{"slot":{"owner":{"app":"planner","user":"bob"},"issuer":"https://id.example","resource":"https://mcp.example/mcp","client":"dynamic"},` +
		`"provider":{"issuer":"https://id.example","authorization_endpoint":"https://id.example/auth","token_endpoint":"https://id.example/token"},"client":{"id":"c"}}`
)

// A database of the first release opens: what was asked can be answered, and what was granted is known to live as long as
// it did.
func TestOldDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tarry.db")
	annSlot, bobSlot := slot(ann).ID(), slot(bob).ID()
	old(t, path,
		`INSERT INTO requests (id, app, usr, session, workflow_id, invocation, agent, call, slot, need, event, status, correlator, deadline, created, ended)
			VALUES ('r1', 'planner', 'ann', 's', 'w', 'e-1', 'root', 'c1', '`+annSlot+`', '`+oldNeed+`', 'event-r1', 'pending', 'corr', 0, 5, 0),
			('r2', 'planner', 'ann', 't', 'w2', 'e-1', 'root', 'c2', '`+annSlot+`', '`+oldNeed+`', 'event-r2', 'pending', 'corr2', 0, 6, 0)`,
		`INSERT INTO flows (state_hash, request, app, usr, status, cookie_hash, body, created, expires, lease, resumed)
			VALUES ('state', 'r1', 'planner', 'ann', 'live', 'cookie', '{}', 5, 9000000000000000, 0, 0)`,
		`INSERT INTO versions (slot, version) VALUES ('`+bobSlot+`', 3)`,
		`INSERT INTO grants (id, slot, app, usr, domain, issuer, resource, client, version, scopes, access, body, expires, lease, created, updated)
			VALUES ('g', '`+bobSlot+`', 'planner', 'bob', '', 'https://id.example', 'https://mcp.example/mcp', 'dynamic', 3, '["read"]', x'00', '`+oldGrant+`', 3600000005, 0, 5, 5)`,
	)
	s := open(t, path)
	ctx := t.Context()
	r, err := s.Request(ctx, "r1", anyone)
	require.NoError(t, err)
	require.Equal(t, auth.StatusPending, r.Status)
	require.Equal(t, "https://tarry.example/connect?request=r1&state=corr", r.Link("https://tarry.example"))

	found, err := s.Grants(ctx, oauth.GrantQuery{Owner: bob, Resource: "https://mcp.example/mcp", Client: auth.ClientDynamic})
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Equal(t, time.Hour, found[0].Life)

	// A denial of a login that was begun before ends its own request.
	require.NoError(t, s.Deny(ctx, "state", "access_denied"))
	for id, status := range map[string]auth.Status{"r1": auth.StatusDenied, "r2": auth.StatusPending} {
		r, err := s.Request(ctx, id, anyone)
		require.NoError(t, err)
		require.Equal(t, status, r.Status, id)
	}
}
