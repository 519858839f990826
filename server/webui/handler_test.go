package webui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/server/openapi/openapitest"
	"tarry/server/signin"
	"tarry/server/web"
	"tarry/server/webui"
)

const public = "https://tarry.example"

// site serves a folder to a person whose user id is in the header User, as a server does.
func site(t *testing.T, dir string) http.Handler {
	t.Helper()
	build, err := webui.Load(dir)
	require.NoError(t, err)
	at, err := url.Parse("https://Tarry.example:443")
	require.NoError(t, err)
	h := webui.New(build, at)
	require.Equal(t, public+"/dev-ui/", h.Address())
	known := func(status int) web.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p := signin.NewPrincipal("p", "p", func(agent.Owner) bool { return true })
				if p.User = r.Header.Get("User"); p.User == "" {
					w.Header().Set(map[int]string{http.StatusSeeOther: "Location", http.StatusUnauthorized: "WWW-Authenticate"}[status], "elsewhere")
					w.WriteHeader(status)
					return
				}
				next.ServeHTTP(w, r.WithContext(signin.NewContext(r.Context(), p)))
			})
		}
	}
	mux := http.NewServeMux()
	h.Mount(mux, known(http.StatusSeeOther), known(http.StatusUnauthorized))
	return openapitest.Check(t, web.Chain(mux, web.SecurityHeaders()))
}

func get(t *testing.T, site http.Handler, target, user string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, target, http.NoBody)
	r.Header.Set("User", user)
	for i := 1; i < len(headers); i += 2 {
		r.Header.Set(headers[i-1], headers[i])
	}
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	return w
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := site(t, folder(t, built()))
	for path, want := range map[string]struct{ kind, cache, body string }{
		"/dev-ui/":                                  {"text/html; charset=utf-8", "no-store", page},
		"/dev-ui/main-ABCDEFGH.js":                  {"text/javascript; charset=utf-8", "private, max-age=31536000, immutable", "main()"},
		"/dev-ui/styles-ABCDEFGH.css":               {"text/css; charset=utf-8", "private, max-age=31536000, immutable", "body{}"},
		"/dev-ui/adk_favicon.svg":                   {"image/svg+xml", "private, no-cache", "<svg/>"},
		"/dev-ui/assets/audio-processor.js":         {"text/javascript; charset=utf-8", "private, no-cache", "audio()"},
		"/dev-ui/data.bin":                          {"application/octet-stream", "private, no-cache", "\x00"},
		"/dev-ui/assets/config/runtime-config.json": {"application/json", "no-store", `{"backendUrl":"","telemetry":false}` + "\n"},
	} {
		w := get(t, s, public+path, "user")
		require.Equal(t, http.StatusOK, w.Code, path)
		require.Equal(t, want.kind, w.Header().Get("Content-Type"), path)
		require.Equal(t, want.cache, w.Header().Get("Cache-Control"), path)
		require.Equal(t, want.body, w.Body.String(), path)
		require.Equal(t, "nosniff", w.Header().Get("X-Content-Type-Options"), path)
		require.Equal(t, "DENY", w.Header().Get("X-Frame-Options"), path)
		require.Empty(t, w.Header().Get("Cross-Origin-Opener-Policy"), "it would cut the popup off from its opener")
		tag := w.Header().Get("ETag")
		if want.cache != "no-store" {
			require.Equal(t, http.StatusNotModified, get(t, s, public+path, "user", "If-None-Match", tag).Code, path)
		}
	}
	w := get(t, s, public+"/dev-ui/main-ABCDEFGH.js", "user", "Range", "bytes=0-3")
	require.Equal(t, http.StatusPartialContent, w.Code)
	require.Equal(t, "main", w.Body.String())
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	policy := get(t, site(t, folder(t, built())), public+"/dev-ui/", "user").Header().Get("Content-Security-Policy")
	for _, want := range []string{
		"default-src 'none'; ", "connect-src 'self'; ", "frame-ancestors 'none'", "base-uri 'self'", "form-action 'none'",
		"script-src 'self' 'wasm-unsafe-eval' 'unsafe-hashes' " + sum("this.media='all'") + " " + sum("start()") + "; ",
	} {
		require.Contains(t, policy, want)
	}
	require.NotContains(t, policy, "'unsafe-eval'")
	for directive := range strings.SplitSeq(policy, "; ") {
		if strings.HasPrefix(directive, "script-src") || strings.HasPrefix(directive, "img-src") {
			require.NotContains(t, directive, "unsafe-inline")
			require.NotContains(t, directive, "http")
		}
	}
	plain := built()
	plain["index.html"] = `<app-root></app-root><script src="./main-ABCDEFGH.js"></script>`
	policy = get(t, site(t, folder(t, plain)), public+"/dev-ui/", "user").Header().Get("Content-Security-Policy")
	require.Contains(t, policy, "script-src 'self' 'wasm-unsafe-eval'; ")
}

// Whoever has a user id of their own gets a UI that uses it.
func TestRedirects(t *testing.T) {
	t.Parallel()
	s := site(t, folder(t, built()))
	const me, inner, ticket = "u-ann", "http://10.0.0.7", "?code=tarry-ticket-x&state=s"
	for _, c := range []struct{ user, from, to string }{
		{"user", public + "/", "/dev-ui/"},
		{me, public + "/?app=planner", "/dev-ui/?app=planner"},
		{me, public + "/dev-ui", "/dev-ui/"},
		{me, public + "/dev-ui/index.html?app=planner", "/dev-ui/?app=planner"},
		{me, public + "/dev-ui/", "/dev-ui/?userId=me"},
		{me, public + "/dev-ui/?app=planner&userId=", "/dev-ui/?app=planner&userId=me"},
		{me, public + "/dev-ui/?userId=me", ""},
		{me, public + "/dev-ui/?userId=somebody", ""},
		{me, public + "/dev-ui/" + ticket, ""},
		{"user", public + "/dev-ui/", ""},
		{"user", public + "/dev-ui/some/where?app=planner", "/dev-ui/?app=planner"},
		{"user", inner + "/dev-ui/?app=planner", public + "/dev-ui/?app=planner&moved=1"},
		{me, inner + "/dev-ui/", public + "/dev-ui/?moved=1&userId=me"},
		{me, inner + "/dev-ui/?moved=1&userId=me", ""},
		{"user", "https://TARRY.example:443/dev-ui/", ""},
		{"user", public + "//evil.example/", "/evil.example/"}, // by ServeMux: a path of our own
	} {
		w := get(t, s, c.from, c.user)
		require.Equal(t, c.to, w.Header().Get("Location"), c.from)
		if c.to == "" {
			require.Equal(t, page, w.Body.String(), c.from)
		}
	}
}

func TestNothingElse(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"secret.txt": "canary"})
	dir := folder(t, built())
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(dir, "link.txt")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "linked")))
	require.NoError(t, os.Symlink("main-ABCDEFGH.js", filepath.Join(dir, "main.js")))
	s := site(t, dir)
	up := strings.Repeat("../", 12)
	for _, path := range []string{
		"link.txt", "linked/secret.txt", "linked/", "main.js", ".version", ".git/config", "assets/.env", "assets/%2eenv", "%2egit/config", "assets/", "assets",
		up + "etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "..%5c..%5cetc%5cpasswd", "/etc/passwd", "%00", "main-ABCDEFGH.js%00.css",
		"assets/../../" + filepath.Base(outside) + "/secret.txt", "index.html/", "main-ABCDEFGH.js/", "MAIN-ABCDEFGH.JS", "./.git/config", "assets//.env", "%c0%ae%c0%ae/secret.txt",
		"runtime-config.json", "main-ABCDEFGH.js;x", "data.bin::$DATA", strings.Repeat("a/", 2000) + "x.js",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, public+"/dev-ui/"+path, http.NoBody)
		require.NoError(t, err, path)
		r.RequestURI = r.URL.RequestURI()
		r.Header.Set("User", "user")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Contains(t, []int{http.StatusNotFound, http.StatusFound, http.StatusMovedPermanently, http.StatusTemporaryRedirect}, w.Code, path)
		for _, not := range []string{"canary", "main()", "KEY=1", "[core]", page} {
			require.NotContains(t, w.Body.String(), not, path)
		}
		if to := w.Header().Get("Location"); to != "" {
			require.True(t, strings.HasPrefix(to, "/") && !strings.HasPrefix(to, "//"), "%s leads to %s", path, to)
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		r := httptest.NewRequestWithContext(t.Context(), method, public+"/dev-ui/", http.NoBody)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	}
}

// Nothing is shown to those who have not signed in, and what changes in the folder later is not served.
func TestSignedInOnly(t *testing.T) {
	t.Parallel()
	dir := folder(t, built())
	s := site(t, dir)
	require.Equal(t, http.StatusSeeOther, get(t, s, public+"/dev-ui/", "").Code)
	require.Equal(t, http.StatusUnauthorized, get(t, s, public+"/dev-ui/main-ABCDEFGH.js", "").Code)
	require.Equal(t, http.StatusUnauthorized, get(t, s, public+"/dev-ui/assets/config/runtime-config.json", "").Code)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main-ABCDEFGH.js"), []byte("other()"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "new.js"), []byte("new()"), 0o600))
	require.Equal(t, "main()", get(t, s, public+"/dev-ui/main-ABCDEFGH.js", "user").Body.String())
	require.Equal(t, http.StatusNotFound, get(t, s, public+"/dev-ui/new.js", "user").Code)
}
