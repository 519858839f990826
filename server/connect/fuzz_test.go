package connect_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
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
