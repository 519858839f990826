package safehttp_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/safehttp"
)

func public() *names {
	a := [][]string{{"93.184.216.34"}}
	return &names{answers: map[string][][]string{
		"example.com": a, "sub.example.com": a, "inside.example.com": {{"10.0.0.1"}},
	}}
}

func TestRedirectsAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		to     string
		method string
		status int
		cfg    safehttp.Config
		reason string
	}{
		"to metadata":              {to: "https://169.254.169.254/", reason: "metadata"},
		"to mapped private":        {to: "https://[::ffff:10.0.0.1]/", reason: "private"},
		"to loopback":              {to: "https://127.0.0.1/", reason: "loopback"},
		"to localhost, dev flag":   {to: "https://localhost/", cfg: safehttp.Config{AllowLoopback: true}, reason: "loopback"},
		"down to http":             {to: "http://example.com/", reason: "https to http"},
		"down to http, dev flag":   {to: "http://127.0.0.1/", cfg: safehttp.Config{AllowLoopback: true}, reason: "https to http"},
		"to another scheme":        {to: "ftp://example.com/", reason: "https to another scheme"},
		"to no URL":                {to: "https://example.com/%zz?code=secret", reason: "not a URL"},
		"with user information":    {to: "https://u:p@example.com/", reason: "user information"},
		"POST 307":                 {to: "https://example.com/", method: http.MethodPost, status: http.StatusTemporaryRedirect, reason: "redirect of a POST"},
		"POST 303":                 {to: "https://example.com/", method: http.MethodPost, status: http.StatusSeeOther, reason: "redirect of a POST"},
		"DELETE":                   {to: "https://example.com/", method: http.MethodDelete, status: http.StatusTemporaryRedirect, reason: "redirect of a DELETE"},
		"to a name of the inside":  {to: "https://inside.example.com/", reason: "private"},
		"to itself without end":    {to: "/", reason: "too many"},
		"HEAD to itself endlessly": {to: "/", method: http.MethodHead, reason: "too many"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.method == "" {
				tt.method = http.MethodGet
			}
			if tt.status == 0 {
				tt.status = http.StatusFound
			}
			tt.cfg.Resolver = public()
			c, _ := internet(t, tt.cfg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", tt.to)
				w.WriteHeader(tt.status)
			}))
			for _, client := range []*http.Client{c.HTTP(), c.Streaming()} {
				req, err := http.NewRequestWithContext(t.Context(), tt.method, "https://example.com/start", strings.NewReader("code=x"))
				require.NoError(t, err)
				resp, err := client.Do(req)
				if resp != nil {
					_ = resp.Body.Close()
				}
				requireBlocked(t, err, tt.reason)
				require.NotContains(t, err.Error(), "secret")
			}
		})
	}
}

func TestMalformedAnswersAreNotQuoted(t *testing.T) {
	t.Parallel()
	c, _ := internet(t, safehttp.Config{Resolver: public()}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://example.com/\x7f?code=secret")
		w.WriteHeader(http.StatusFound)
	}))
	_, err := get(t, c.HTTP(), "https://example.com/")
	require.ErrorContains(t, err, "malformed")
	require.NotContains(t, err.Error(), "secret")
}

func TestFiveRedirectsAreFollowed(t *testing.T) {
	t.Parallel()
	referer := "not set"
	c, _ := internet(t, safehttp.Config{Resolver: public()}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
		if n > 0 {
			w.Header().Set("Location", fmt.Sprintf("/%d", n-1))
			w.WriteHeader(http.StatusFound)
			return
		}
		referer = r.Referer()
	}))
	_, err := get(t, c.HTTP(), "https://example.com/5?code=secret")
	require.NoError(t, err)
	require.Empty(t, referer, "it would hold the query")
	_, err = get(t, c.HTTP(), "https://example.com/6")
	requireBlocked(t, err, "too many")
}

func TestHeadersStayWithTheirOrigin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		path []string // hops after the first request
		kept bool
	}{
		"same origin":          {path: []string{"https://example.com/end"}, kept: true},
		"subdomain":            {path: []string{"https://sub.example.com/end"}},
		"other port":           {path: []string{"https://example.com:8443/end"}},
		"out and on":           {path: []string{"https://sub.example.com/1", "https://sub.example.com/end"}},
		"out and back":         {path: []string{"https://sub.example.com/1", "https://example.com/end"}},
		"two hops, one origin": {path: []string{"https://example.com/1", "https://example.com/end"}, kept: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got http.Header
			c, _ := internet(t, safehttp.Config{Resolver: public()}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/start":
					http.Redirect(w, r, tt.path[0], http.StatusFound)
				case "/1":
					http.Redirect(w, r, tt.path[1], http.StatusFound)
				default:
					got = r.Header.Clone()
				}
			}))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.com/start", nil)
			require.NoError(t, err)
			req.Header.Set("Authorization", "Bearer a")
			req.Header.Set("X-Api-Key", "b")
			req.Header.Set("Cookie", "c=d")
			req.Header.Set("Accept", "text/plain")
			resp, err := c.Do(req)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			for _, name := range []string{"Authorization", "X-Api-Key", "Cookie"} {
				require.Equal(t, tt.kept, got.Get(name) != "", name)
			}
			require.Equal(t, "text/plain", got.Get("Accept"))
		})
	}
}
