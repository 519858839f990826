package signin_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/server/signin"
	"tarry/server/web"
)

func TestPrincipal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name      string
		p         signin.Principal
		app, user string
		ok, bad   bool
	}{
		{"operator takes any label", signin.Operator(), "app", "anyone@example.com", true, false},
		{"invalid user", signin.Operator(), "app", "a/b", false, true},
		{"empty app", signin.Operator(), "", "u", false, true},
		{"zero principal", signin.Principal{}, "app", "u", false, false},
		{"outside of a mode", signin.FromContext(context.Background()), "app", "u", false, false},
		{"own user", person("u"), "app", "u", true, false},
		{"other user", person("u"), "app", "v", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			owner, err := tc.p.Owner(tc.app, tc.user)
			require.Equal(t, tc.ok, tc.p.Access()(agent.Owner{App: tc.app, User: tc.user}))
			if tc.ok {
				require.NoError(t, err)
				require.Equal(t, agent.Owner{App: tc.app, User: tc.user}, owner)
				return
			}
			require.ErrorIs(t, err, signin.ErrForbidden)
			require.Zero(t, owner)
			if tc.bad {
				require.ErrorIs(t, err, agent.ErrInvalidOwner)
			} else {
				require.NotErrorIs(t, err, agent.ErrInvalidOwner)
			}
		})
	}
}

func person(user string) signin.Principal {
	return signin.NewPrincipal(user, "issuer "+user, func(o agent.Owner) bool { return o.User == user })
}

type call struct {
	name   string
	method string // GET by default
	route  signin.Route
	peer   string // 127.0.0.1 by default
	host   string // localhost:8080 by default
	header http.Header
	body   string
	status int // 200 by default
}

func head(pairs ...string) http.Header {
	h := http.Header{}
	for pair := range slices.Chunk(pairs, 2) {
		h.Set(pair[0], pair[1])
	}
	return h
}

func TestNone(t *testing.T) {
	t.Parallel()
	allowed, err := web.ParseOrigins([]string{"http://localhost:4200"})
	require.NoError(t, err)
	const form = "application/x-www-form-urlencoded"
	own, evil := "http://localhost:8080", "https://evil.example"
	for _, tc := range []call{
		{name: "plain"},
		{name: "127.0.0.1", host: "127.0.0.1:8080"},
		{name: "IPv6", host: "[::1]:8080", peer: "[::1]:1234"},
		{name: "mapped peer", peer: "[::ffff:127.0.0.1]:1"},
		{name: "upper case", host: "LOCALHOST:8080"},

		{name: "peer on the network", peer: "192.0.2.7:1234", status: 403},
		{name: "private peer", peer: "10.0.0.1:1234", status: 403},
		{name: "no peer", peer: "@", status: 403},
		{name: "rebinding", host: "evil.example:8080", status: 403},
		{name: "rebinding, no port", host: "evil.example", status: 403},
		{name: "other port", host: "localhost:9090", status: 403},
		{name: "no port", host: "localhost", status: 403},
		{name: "lookalike", host: "localhost.evil.example:8080", status: 403},
		{name: "trailing dot", host: "localhost.:8080", status: 403},
		{name: "brackets", host: "[localhost]:8080", status: 403},
		{name: "0.0.0.0", host: "0.0.0.0:8080", status: 403},
		{name: "no host", host: "-", status: 403},
		{name: "Forwarded", header: head("Forwarded", "for=192.0.2.1"), status: 403},
		{name: "X-Forwarded-For", header: head("X-Forwarded-For", "127.0.0.1"), status: 403},
		{name: "X-Forwarded-Anything", header: head("X-Forwarded-Anything", ""), status: 403},
		{name: "X-Real-IP", header: head("X-Real-IP", "127.0.0.1"), status: 403},
		{name: "Via", header: head("Via", "1.1 proxy"), status: 403},

		{name: "JSON post", method: "POST", header: head("Content-Type", "application/json; charset=utf-8"), body: "{}"},
		{name: "JSON post of own page", method: "POST", header: head("Content-Type", "application/json", "Origin", own, "Sec-Fetch-Site", "same-origin"), body: "{}"},
		{name: "post without body", method: "POST"},
		{name: "delete", method: "DELETE"},
		{name: "form post", method: "POST", header: head("Content-Type", form), body: "a=b", status: 415},
		{name: "text post", method: "POST", header: head("Content-Type", "text/plain"), body: "{}", status: 415},
		{name: "untyped post", method: "PATCH", body: "{}", status: 415},
		{name: "two types", method: "PUT", header: head("Content-Type", "text/plain; application/json"), body: "{}", status: 415},
		{name: "cross-origin JSON post", method: "POST", header: head("Content-Type", "application/json", "Origin", evil, "Sec-Fetch-Site", "cross-site"), body: "{}", status: 403},
		{name: "cross-origin empty post", method: "POST", header: head("Origin", evil), status: 403},
		{name: "other port's page", method: "POST", header: head("Origin", "http://localhost:3000", "Sec-Fetch-Site", "same-site"), status: 403},
		{name: "other name's page", method: "POST", header: head("Origin", "http://127.0.0.1:8080", "Sec-Fetch-Site", "cross-site"), status: 403},
		{name: "https page of same name", method: "POST", header: head("Origin", "https://localhost:8080"), status: 403},
		{name: "allowed origin", method: "POST", header: head("Content-Type", "application/json", "Origin", "http://localhost:4200", "Sec-Fetch-Site", "same-site"), body: "{}"},
		{name: "cross-site without origin", method: "POST", header: head("Sec-Fetch-Site", "cross-site"), status: 403},
		{name: "null origin", method: "POST", header: head("Origin", "null"), status: 403},
		{name: "cross-origin read", header: head("Origin", evil), status: 403},
		{name: "link from elsewhere", header: head("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")},

		{name: "form on a form route", route: signin.Forms, method: "POST", header: head("Content-Type", form, "Origin", own), body: "a=b"},
		{name: "form of a no-referrer page", route: signin.Forms, method: "POST", header: head("Content-Type", form, "Origin", "null", "Sec-Fetch-Site", "same-origin"), body: "a=b"},
		{name: "cross-site form on a form route", route: signin.Forms, method: "POST", header: head("Content-Type", form, "Origin", evil, "Sec-Fetch-Site", "cross-site"), body: "a=b", status: 403},
		{name: "provider's redirect", route: signin.Forms, header: head("Sec-Fetch-Site", "cross-site", "Origin", "null")},
		{name: "rebinding on a form route", route: signin.Forms, host: "evil.example:8080", status: 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var logs bytes.Buffer
			mode := signin.None{Origins: allowed, Log: slog.New(slog.NewTextHandler(&logs, nil))}
			var who signin.Principal
			h := web.Chain(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { who = signin.FromContext(r.Context()) }),
				web.RequestIDs(), mode.Require(tc.route))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, tc.request(t.Context()))
			want := tc.status
			if want == 0 {
				want = http.StatusOK
			}
			require.Equal(t, want, w.Code, w.Body.String())
			if want == http.StatusOK {
				require.Equal(t, "local", who.Subject)
				require.Empty(t, logs.String())
				return
			}
			require.Empty(t, who.Subject)
			require.Contains(t, logs.String(), "request refused")
			require.Contains(t, w.Body.String(), w.Header().Get(web.RequestIDHeader))
			require.NotContains(t, logs.String(), "SECRET")
			require.NotContains(t, w.Body.String(), "evil")
		})
	}
}

func (c call) request(ctx context.Context) *http.Request {
	method, host, peer := c.method, c.host, c.peer
	if method == "" {
		method = http.MethodGet
	}
	r := httptest.NewRequestWithContext(ctx, method, "/x?code=SECRET", strings.NewReader(c.body))
	switch host {
	case "":
		host = "localhost:8080"
	case "-":
		host = ""
	}
	if peer == "" {
		peer = "127.0.0.1:50000"
	}
	r.Host, r.RemoteAddr = host, peer
	for name, values := range c.header {
		r.Header[name] = values
	}
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}
	return r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
}

func TestNoneOnARealListener(t *testing.T) {
	t.Parallel()
	mode := signin.None{Log: slog.New(slog.DiscardHandler)}
	srv := httptest.NewServer(mode.Require(signin.API)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	t.Cleanup(srv.Close)
	for host, status := range map[string]int{"": 200, "evil.example": 403, "localhost": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL, nil)
		require.NoError(t, err)
		if host != "" {
			r.Host = host
		}
		res, err := srv.Client().Do(r)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, status, res.StatusCode, host)
	}
}

func TestNonePort(t *testing.T) {
	t.Parallel()
	mode := signin.None{Port: 80, Log: slog.New(slog.DiscardHandler)}
	h := mode.Require(signin.API)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, status := range map[string]int{"localhost": 200, "localhost:80": 200, "localhost:8080": 403} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, call{host: host}.request(t.Context()))
		require.Equal(t, status, w.Code, host)
	}
}
