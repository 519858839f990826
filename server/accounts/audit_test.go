package accounts_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/server/accounts"
	"tarry/server/openapi/openapitest"
	"tarry/server/signin"
	"tarry/store"
	"tarry/store/storetest"
)

var (
	ann = agent.Owner{App: "planner", User: "ann"}
	bob = agent.Owner{App: "planner", User: "bob"}
	// annElsewhere is the same person in another app.
	annElsewhere = agent.Owner{App: "writer", User: "ann"}
)

// callers are who may ask: a person, a service for all people of one app, the operator, and nobody.
func callers() map[string]signin.Principal {
	return map[string]signin.Principal{
		"ann":      signin.NewPrincipal("Ann", "https://id.example ann", func(o agent.Owner) bool { return o.User == "ann" }),
		"bob":      signin.NewPrincipal("Bob", "https://id.example bob", func(o agent.Owner) bool { return o.User == "bob" }),
		"planner":  signin.NewPrincipal("planner", "service planner", func(o agent.Owner) bool { return o.App == "planner" }),
		"operator": signin.Operator(),
		"nobody":   {},
	}
}

type world struct {
	t           *testing.T
	store       *store.Store
	connections *connections
	url         string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s := storetest.Open(t)
	w := &world{t: t, store: s, connections: &connections{Store: s}}
	who, mux := callers(), http.NewServeMux()
	server := httptest.NewServer(openapitest.Check(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(rw, r.WithContext(signin.NewContext(r.Context(), who[r.Header.Get("Test-Caller")])))
	})))
	t.Cleanup(server.Close)
	w.url = server.URL
	public, err := url.Parse(w.url)
	require.NoError(t, err)
	h := &accounts.Handler{Log: s, Connections: w.connections, Logger: slog.New(slog.DiscardHandler)}
	h.Mount(mux)
	pages, err := accounts.NewPages(h, public, auth.Secret{})
	require.NoError(t, err)
	pages.Mount(mux, func(next http.Handler) http.Handler { return next })
	return w
}

func (w *world) do(caller, method, path string) (int, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, nil)
	require.NoError(w.t, err)
	req.Header.Set("Test-Caller", caller)
	resp, err := (&http.Client{}).Do(req)
	require.NoError(w.t, err)
	return resp.StatusCode, read(w.t, resp)
}

func read(t *testing.T, resp *http.Response) string {
	t.Helper()
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(body)
}

func (w *world) used(owner agent.Owner, tool string) {
	w.t.Helper()
	slot := auth.Slot{Owner: owner, Issuer: "https://id.example", Client: auth.ClientDynamic}
	require.NoError(w.t, w.store.Used(w.t.Context(), oauth.Grant{Slot: slot}, oauth.Use{Agent: "root", Tool: tool}))
}

func TestAuditIsOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, owner := range []agent.Owner{ann, bob, annElsewhere, bob} {
		w.used(owner, "tool-of-"+owner.User)
	}
	for _, c := range []struct {
		caller, query string
		status, rows  int
	}{
		{"ann", "user=ann", 200, 2},
		{"ann", "user=ann&app=planner", 200, 1},
		{"ann", "user=ann&app=nowhere", 200, 0},
		{"ann", "user=bob", 403, 0},
		{"ann", "user=bob&app=planner", 403, 0},
		{"ann", "", 403, 0},
		{"ann", "app=planner", 403, 0},
		{"ann", "user=%25", 403, 0},
		{"bob", "user=bob", 200, 2},
		{"planner", "app=planner", 200, 3},
		{"planner", "app=planner&user=bob", 200, 2},
		{"planner", "app=writer", 403, 0},
		{"planner", "user=ann", 403, 0},
		{"planner", "", 403, 0},
		{"operator", "", 200, 4},
		{"operator", "action=refused", 200, 0},
		{"nobody", "user=ann", 403, 0},
		{"operator", "limit=0", 400, 0},
		{"operator", "after=x", 400, 0},
		{"operator", "since=x", 400, 0},
		{"operator", "until=2026", 400, 0},
	} {
		status, body := w.do(c.caller, http.MethodGet, "/audit?"+c.query)
		require.Equal(t, c.status, status, "%s %s: %s", c.caller, c.query, body)
		var log accounts.Log
		require.NoError(t, json.Unmarshal([]byte(body), &log))
		require.Len(t, log.Entries, c.rows, "%s %s", c.caller, c.query)
		if c.caller == "ann" {
			require.NotContains(t, body, "bob")
		}
	}
	// A cursor of somebody else's says where to go on, and opens nothing.
	_, body := w.do("bob", http.MethodGet, "/audit?limit=1&user=bob")
	var log accounts.Log
	require.NoError(t, json.Unmarshal([]byte(body), &log))
	require.True(t, log.More)
	status, body := w.do("ann", http.MethodGet, "/audit?user=ann&after="+url.QueryEscape(log.Next))
	require.Equal(t, http.StatusOK, status)
	require.NotContains(t, body, "bob")
}
