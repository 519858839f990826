package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/accounts"
)

func TestAccounts(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var seen []string
	reason := ""
	answer := func(f func(*http.Request) any) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, r.Method+" "+r.URL.String())
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(f(r))
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /list-apps", answer(func(*http.Request) any { return []string{"planner", "writer"} }))
	mux.HandleFunc("GET /apps/{app}/users/ann/accounts", answer(func(r *http.Request) any {
		one := accounts.Account{ID: "a-" + r.PathValue("app"), App: r.PathValue("app"), User: "ann", Provider: "id.example", Account: "ann@example.com", Connected: since, Renews: true}
		if r.URL.Query().Get("after") == "" {
			return accounts.Page{Accounts: []accounts.Account{one}, Next: "c"}
		}
		one.ID += "-2"
		return accounts.Page{Accounts: []accounts.Account{one}}
	}))
	mux.HandleFunc("POST /apps/writer/users/ann/accounts/{id}/revoke", answer(func(r *http.Request) any {
		return accounts.Outcome{ID: r.PathValue("id"), Revoked: reason == "", Reason: reason}
	}))
	mux.HandleFunc("DELETE /apps/writer/users/ann/accounts/{id}", answer(func(r *http.Request) any { return accounts.Outcome{ID: r.PathValue("id")} }))
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	run := func(args ...string) (int, string, string) {
		return starter(t.Context(), nil, append([]string{"accounts", "--server", s.URL, "--user", "ann"}, args...)...)
	}

	status, out, said := run("list")
	require.Equal(t, 0, status, said)
	require.Equal(t, 5, strings.Count(out, "\n"))
	require.Contains(t, out, "ann@example.com")
	require.Contains(t, out, "a-writer-2")

	status, _, said = run("revoke", "a-writer-2")
	require.Equal(t, 0, status, said)
	require.Contains(t, seen[len(seen)-1], "POST /apps/writer/users/ann/accounts/a-writer-2/revoke")
	reason = "unavailable"
	status, _, said = run("revoke", "a-writer")
	require.Equal(t, exitFailed, status)
	require.Contains(t, said, "the provider was not told: unavailable")
	status, _, said = run("delete", "a-writer", "--app", "writer")
	require.Equal(t, 0, status, said)
	require.Contains(t, seen[len(seen)-1], "DELETE /apps/writer/users/ann/accounts/a-writer")
	status, _, said = run("delete", "a-nowhere")
	require.Equal(t, exitUnusable, status)
	require.Contains(t, said, "starter accounts list")
}
