package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/server/accounts"
)

// auditServer answers /audit with pages, one after the other; the last again.
func auditServer(t *testing.T, pages ...accounts.Log) (address string, queries func() []url.Values) {
	t.Helper()
	var mu sync.Mutex
	var seen []url.Values
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		page := pages[min(len(seen), len(pages)-1)]
		seen = append(seen, r.URL.Query())
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(page)
	}))
	t.Cleanup(s.Close)
	return s.URL, func() []url.Values {
		mu.Lock()
		defer mu.Unlock()
		return append([]url.Values{}, seen...)
	}
}

func auditEntry(detail string) accounts.Entry {
	return accounts.Entry{At: since, App: "planner", User: "ann", Action: "refused", Detail: detail, Actor: "https://id.example ann"}
}

func TestAudit(t *testing.T) {
	t.Parallel()
	address, queries := auditServer(
		t, accounts.Log{Entries: []accounts.Entry{auditEntry("one")}, Next: "c1", More: true}, accounts.Log{Next: "c2", More: true},
		accounts.Log{Entries: []accounts.Entry{auditEntry("two")}, Next: "c3"},
	)
	status, out, said := starter(t.Context(), nil, "audit", "--server", address, "--user", "ann", "--app", "planner", "--action", "refused",
		"--since", "2026-03-01T12:00:00Z", "--until", "1h", "--after", "c0")
	require.Equal(t, 0, status, said)
	require.Equal(t, 2, strings.Count(out, "\n"))
	require.Contains(t, out, `{"at":"2026-03-01T12:00:00Z","app":"planner","user":"ann","action":"refused","detail":"one","actor":"https://id.example ann"}`)
	require.Contains(t, said, "--after c3")
	var after []string
	for _, q := range queries() {
		after = append(after, q.Get("after"))
		require.Equal(t, "ann planner refused 2026-03-01T12:00:00Z", q.Get("user")+" "+q.Get("app")+" "+q.Get("action")+" "+q.Get("since"))
		require.NotEmpty(t, q.Get("until"))
	}
	require.Equal(t, []string{"c0", "c1", "c2"}, after)

	status, _, _ = starter(t.Context(), nil, "audit", "--server", address, "--everyone")
	require.Equal(t, 0, status)
	require.False(t, queries()[3].Has("user"))

	for _, wrong := range [][]string{{"--since", "yesterday"}, {"--until", "-1h"}, {"--format", "xml"}} {
		status, _, said := starter(t.Context(), nil, append([]string{"audit", "--server", address}, wrong...)...)
		require.Equal(t, exitUnusable, status)
		require.Contains(t, said, wrong[0])
	}
}

// Names of tools and agents are other people's, and a spreadsheet runs what looks like a formula.
func TestAuditCSV(t *testing.T) {
	t.Parallel()
	hostile := []string{
		`=HYPERLINK("https://evil.example","x")`, "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", "|calc", "%0a", "＝1", "\ufeff=1", "\u00a0=1",
		"a,b", `say "x"`, "plain = fine", "\x1b]0;x\x07",
	}
	var entries []accounts.Entry
	for _, text := range hostile {
		entries = append(entries, auditEntry(text))
	}
	address, _ := auditServer(t, accounts.Log{Entries: entries, Next: "c"})
	status, out, said := starter(t.Context(), nil, "audit", "--server", address, "--format", "csv")
	require.Equal(t, 0, status, said)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, len(hostile)+1)
	require.Equal(t, "at app user session request action detail actor", strings.Join(rows[0], " "))
	for i, row := range rows[1:] {
		detail := row[6]
		if i < 13 {
			require.True(t, strings.HasPrefix(detail, "'"), "%q", detail)
		}
		require.NotContains(t, detail, "\x1b")
		require.False(t, strings.ContainsAny(detail, "\r\n\t"), "%q", detail)
	}
	require.Equal(t, []string{"a,b", `say "x"`, "plain = fine"}, []string{rows[14][6], rows[15][6], rows[16][6]})
}

func TestAuditFollow(t *testing.T) {
	t.Parallel()
	address, queries := auditServer(t, accounts.Log{Entries: []accounts.Entry{auditEntry("one")}, Next: "c1"}, accounts.Log{Next: "c1"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan int)
	go func() {
		status, _, _ := starter(ctx, nil, "audit", "--server", address, "--follow")
		done <- status
	}()
	require.Eventually(t, func() bool { return len(queries()) > 1 }, 10*time.Second, 10*time.Millisecond)
	require.Equal(t, "c1", queries()[1].Get("after"))
	cancel()
	require.Equal(t, 0, <-done)
}
