package connect_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/connect"
	"tarry/server/web"
)

// FuzzCallback: whatever a browser brings, the machinery sees one state and either a code or a known error, and the
// page shows nothing of it.
func FuzzCallback(f *testing.F) {
	for _, query := range []string{"", "state=s&code=c", "state=s&error=access_denied", "state=s&code=c&iss=", "state=s;code=c", "state=%00&code=%ff", "&&=&state"} {
		f.Add(digest, query)
	}
	f.Fuzz(func(t *testing.T, last, query string) {
		logins := &fakeLogins{resultErr: connect.ErrProvider}
		h, err := connect.New(connect.Config{PublicURL: "http://localhost:8080", Logins: logins, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		mux := http.NewServeMux()
		h.Mount(mux, func(next http.Handler) http.Handler { return next })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/oauth/callback/x", nil)
		r.URL.Path, r.URL.RawQuery = "/oauth/callback/"+last, query
		w := httptest.NewRecorder()
		web.Chain(mux, web.RequestIDs()).ServeHTTP(w, r)
		require.NotEqual(t, http.StatusOK, w.Code)
		if logins.completed == 0 {
			return
		}
		require.Equal(t, http.StatusBadGateway, w.Code)
		c := logins.callback
		require.False(t, c.State.IsZero())
		require.NotEqual(t, c.Code.IsZero(), c.Error == "")
		require.Regexp(t, `^[a-z_]*$`, c.Error)
		require.Regexp(t, `^[0-9a-f]{1,64}$`, c.Digest)
	})
}

// FuzzBegin: whatever a form holds, nothing is begun without this browser's token for this request.
func FuzzBegin(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	for _, seed := range [][3]string{
		{form, "request=adk-r1&csrf=x", "tarry-csrf=AAAAAAAAAAAAAAAAAAAAAAAAAA"},
		{form, "request=adk-r1", ""},
		{form + "; charset=utf-8", "csrf=&request=", "tarry-csrf="},
		{"application/json", `{"request":"adk-r1"}`, ""},
		{"multipart/form-data; boundary=x", "--x--", "a=b; tarry-csrf"},
		{form, "request=a;csrf=b&&=%zz", "tarry-csrf=a; tarry-csrf=b"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, kind, body, cookie string) {
		logins := &fakeLogins{}
		h, err := connect.New(connect.Config{PublicURL: "http://localhost:8080", Logins: logins, Log: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		mux := http.NewServeMux()
		h.Mount(mux, func(next http.Handler) http.Handler { return next })
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost:8080/connect", strings.NewReader(body))
		r.Header["Content-Type"], r.Header["Cookie"] = []string{kind}, []string{cookie}
		w := httptest.NewRecorder()
		web.Chain(mux, web.RequestIDs()).ServeHTTP(w, r)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.Zero(t, logins.begun)
		require.Empty(t, w.Header().Values("Set-Cookie"))
		require.Empty(t, w.Header().Get("Location"))
	})
}
