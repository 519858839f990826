package signin_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/signin"
	"tarry/server/web"
)

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	require.NoError(t, err)
	return u
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestProxy(t *testing.T) {
	t.Parallel()
	proxy, own := "10.0.0.5:4000", "https://tarry.example"
	named := func(pairs ...string) http.Header { return head(append([]string{"X-User", "ann"}, pairs...)...) }
	for _, tc := range []call{
		{name: "person", peer: proxy, header: named()},
		{name: "mapped address", peer: "[::ffff:10.0.0.5]:4000", header: named()},
		{name: "nobody", peer: proxy, status: 401},
		{name: "empty name", peer: proxy, header: head("X-User", " "), status: 401},
		{name: "two names", peer: proxy, header: http.Header{"X-User": {"ann", "bob"}}, status: 403},
		{name: "control character", peer: proxy, header: head("X-User", "ann\x01"), status: 403},
		{name: "unlisted peer", peer: "10.0.0.6:4000", header: named(), status: 403},
		{name: "loopback is not listed", peer: "127.0.0.1:4000", header: named(), status: 403},
		{name: "unlisted peer that claims a forward", peer: "192.0.2.1:1", header: named("X-Forwarded-For", "10.0.0.5"), status: 403},
		{name: "unlisted peer without name", peer: "192.0.2.1:1", status: 401},
		{name: "another site's post", method: "POST", peer: proxy, header: named("Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), status: 403},
		{name: "own page's post", method: "POST", peer: proxy, header: named("Origin", own, "Sec-Fetch-Site", "same-origin", "Content-Type", "application/json"), body: "{}"},
		{name: "form to the API", method: "POST", peer: proxy, header: named("Origin", own, "Content-Type", "text/plain"), body: "{}", status: 415},
		{name: "form to a page", route: signin.Forms, method: "POST", peer: proxy, header: named("Origin", "null", "Sec-Fetch-Site", "same-origin"), body: "a=b"},
		{name: "page of nobody", route: signin.Forms, peer: proxy, status: 401},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var logs bytes.Buffer
			gate, err := signin.New(signin.Config{
				PublicURL: parse(t, own), Log: slog.New(slog.NewTextHandler(&logs, nil)), Proxy: &signin.Proxy{Header: "X-User", Issuer: "proxy", Peers: cidr("10.0.0.5/32")},
			})
			require.NoError(t, err)
			var who signin.Principal
			h := web.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = signin.FromContext(r.Context()) }), web.RequestIDs(), gate.Require(tc.route))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, tc.request(t.Context()))
			want := max(tc.status, http.StatusOK)
			require.Equal(t, want, w.Code, w.Body.String())
			if want != http.StatusOK {
				require.Empty(t, who.Subject)
				require.Equal(t, want == http.StatusForbidden || want == http.StatusUnsupportedMediaType, logs.Len() > 0, "what looks like an attack is logged")
				return
			}
			require.Equal(t, signin.UserID("proxy", "ann"), who.User)
			_, err = who.Owner("app", "me")
			require.NoError(t, err)
			_, err = who.Owner("app", signin.UserID("proxy", "bob"))
			require.ErrorIs(t, err, signin.ErrForbidden)
		})
	}
}

func TestPeers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, remote string
		forwarded    []string
		want         string
	}{
		{"direct", "192.0.2.1:5", nil, "192.0.2.1"},
		{"direct with a claim", "192.0.2.1:5", []string{"10.0.0.5"}, "192.0.2.1"},
		{"through the proxy", "10.0.0.5:5", []string{"198.51.100.7"}, "198.51.100.7"},
		{"with what the client wrote", "10.0.0.5:5", []string{"1.1.1.1, 198.51.100.7"}, "198.51.100.7"},
		{"two proxies", "10.0.0.5:5", []string{"1.1.1.1, 198.51.100.7", "10.0.0.6"}, "198.51.100.7"},
		{"with a port", "10.0.0.5:5", []string{"198.51.100.7:99"}, "198.51.100.7"},
		{"IPv6 counts by network", "10.0.0.5:5", []string{"2001:db8:1:2:3:4:5:6"}, "2001:db8:1:2::/64"},
		{"IPv6 with a port", "10.0.0.5:5", []string{"[2001:db8:1:2::1]:9"}, "2001:db8:1:2::/64"},
		{"no header", "10.0.0.5:5", nil, "10.0.0.5"},
		{"no address", "10.0.0.5:5", []string{"198.51.100.7, unknown"}, "10.0.0.5"},
		{"proxies alone", "10.0.0.5:5", []string{"10.0.0.6"}, "10.0.0.6"},
		{"no peer", "@", nil, "unknown"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.RemoteAddr = tc.remote
		for _, v := range tc.forwarded {
			r.Header.Add("X-Forwarded-For", v)
		}
		require.Equal(t, tc.want, signin.Peers(cidr("10.0.0.0/24")).Key(r), tc.name)
	}
}
