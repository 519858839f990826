package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

const uiOrigin = "http://localhost:4200"

// Pages of other sites reach no route, whatever they send along; those of a listed origin reach all of them, without cookies,
// and their browser lets them read what it got.
func TestOrigins(t *testing.T) {
	t.Parallel()
	allowed := []string{"TARRY_ALLOW_ORIGINS=" + uiOrigin + `, regex:https://.*\.corp\.example`}
	o := single(text("ok"))
	o.env = allowed
	w := newWorld(t, o)
	w.origins(nil)

	o = single(text("ok"))
	o.env = allowed
	p := newPeople(t, o, "")
	p.origins(http.Header{"Authorization": {"Bearer " + p.program(demo.Subject("alice")).token}})
}

func (w *world) origins(credentials http.Header) {
	w.t.Helper()
	fill := strings.NewReplacer("{app}", "assistant", "{user}", "me", "{session}", "s", "{call}", "c", "{request}", "q", "{account}", "a")
	if credentials == nil {
		fill = strings.NewReplacer("{app}", "assistant", "{user}", "ann", "{session}", "s", "{call}", "c", "{request}", "q", "{account}", "a")
	}
	routes := apiRoutes(w.t)
	require.Greater(w.t, len(routes), 20)
	before := w.counts()
	for _, foreign := range []string{
		"https://evil.example", "null", "http://localhost:4201", "https://localhost:4200", "http://localhost:4200.evil.example", "http://LOCALHOST:4200",
		"https://corp.example", "https://a.corp.example.evil.example", "https://evil.example#.corp.example", "https://a.corp.example:444",
	} {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			header, _ := w.fromPage(method, fill.Replace(path), foreign, credentials, http.StatusForbidden)
			require.Empty(w.t, header.Get("Access-Control-Allow-Origin"), "%s from %s", route, foreign)
		}
		header, _ := w.fromPage(http.MethodOptions, "/run_sse", foreign, http.Header{"Access-Control-Request-Method": {"POST"}}, http.StatusForbidden)
		require.Empty(w.t, header.Get("Access-Control-Allow-Origin"), foreign)
	}
	require.Equal(w.t, before, w.counts())
	for _, listed := range []string{uiOrigin, "https://ui.corp.example"} {
		for _, route := range routes {
			method, path, _ := strings.Cut(route, " ")
			header, _ := w.fromPage(http.MethodOptions, fill.Replace(path), listed, http.Header{
				"Access-Control-Request-Method": {method}, "Access-Control-Request-Headers": {"authorization,content-type,idempotency-key,last-event-id"},
			}, http.StatusNoContent)
			require.Contains(w.t, strings.Split(header.Get("Access-Control-Allow-Methods"), ", "), method)
			header, body := w.fromPage(method, fill.Replace(path), listed, credentials, 0)
			require.NotContains(w.t, body, "other sites", route)
			require.NotContains(w.t, body, "sign in first", route)
			require.Equal(w.t, listed, header.Get("Access-Control-Allow-Origin"), route)
			require.Empty(w.t, header.Get("Access-Control-Allow-Credentials"), route)
			require.Empty(w.t, header.Values("Set-Cookie"), route)
			require.Contains(w.t, header.Get("Access-Control-Expose-Headers"), "Retry-After", route)
		}
	}
}

// fromPage asks as a page of an origin does; status 0 is any.
func (w *world) fromPage(method, path, origin string, more http.Header, status int) (http.Header, string) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+path, strings.NewReader("{}"))
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Origin", origin)
	for name, values := range more {
		req.Header[name] = values
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	require.NoError(w.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	if status != 0 {
		require.Equal(w.t, status, resp.StatusCode, "%s %s from %s", method, path, origin)
	}
	return resp.Header, string(body)
}
