package web_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/server/web"
)

func TestChainOrderAndRequestID(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logs, nil))
	var seen string
	flushed := errors.New("not called")
	h := web.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = web.RequestID(r.Context())
		flushed = http.NewResponseController(w).Flush()
		web.JSON(w, http.StatusAccepted, map[string]int{"n": 1})
	}), web.RequestIDs(), web.AccessLog(log), web.Recover(log), web.SecurityHeaders())
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a/b?code=SECRETCODE&state=SECRETSTATE", nil)
	r.Header.Set(web.RequestIDHeader, "forged")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	require.NoError(t, flushed)
	require.Len(t, seen, 16)
	require.Equal(t, seen, w.Header().Get(web.RequestIDHeader))
	require.Equal(t, "same-origin", w.Header().Get("Cross-Origin-Resource-Policy"))
	require.True(t, w.Flushed)
	require.Contains(t, logs.String(), `"path":"/a/b"`)
	require.Contains(t, logs.String(), seen)
	require.NotContains(t, logs.String(), "SECRET")
	require.NotContains(t, logs.String(), "forged")
}

func TestRecover(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&logs, nil))
	run := func(value any) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		web.Chain(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(value) }),
			web.RequestIDs(), web.AccessLog(log), web.Recover(log)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
		return w
	}
	w := run("token SECRET")
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.JSONEq(t, `{"error":"internal error","request_id":"`+w.Header().Get(web.RequestIDHeader)+`"}`, w.Body.String())
	require.NotContains(t, logs.String(), "SECRET")
	require.Contains(t, logs.String(), `"status":500`)
	require.PanicsWithValue(t, http.ErrAbortHandler, func() { run(http.ErrAbortHandler) })
}

func TestErrorPage(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
	w := httptest.NewRecorder()
	web.Error(w, r, http.StatusForbidden, "<script>no</script>")
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Contains(t, w.Body.String(), "<title>Forbidden</title>")
	require.NotContains(t, w.Body.String(), "<script>")
	_, rest, ok := strings.Cut(w.Body.String(), "<style>")
	require.True(t, ok)
	style, _, ok := strings.Cut(rest, "</style>")
	require.True(t, ok)
	sum := sha256.Sum256([]byte(style))
	csp := w.Header().Get("Content-Security-Policy")
	require.Contains(t, csp, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'", "the policy allows the page's own style")
	require.Contains(t, csp, "form-action 'none'")
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		status     int
	}{
		{"good", `{"a":"x","more":1}`, 0},
		{"empty", ``, 400},
		{"syntax", `{"a":SECRET}`, 400},
		{"type", `{"a":12345678}`, 400},
		{"trailing", `{"a":"x"} {"a":"SECRET"}`, 400},
		{"large", `{"a":"` + strings.Repeat("x", 200) + `"}`, 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var v struct{ A string }
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(tc.body))
			err := web.Decode(r, &v, 100)
			if tc.status == 0 {
				require.NoError(t, err)
				require.Equal(t, "x", v.A)
				return
			}
			var e *web.RequestError
			require.ErrorAs(t, err, &e)
			require.Equal(t, tc.status, e.Status)
			require.NotContains(t, err.Error(), "SECRET")
			require.NotContains(t, err.Error(), "12345678")
			require.Equal(t, tc.name == "empty", errors.Is(err, web.ErrNoBody))
			w := httptest.NewRecorder()
			web.Refuse(w, r, slog.New(slog.DiscardHandler), err)
			require.Equal(t, tc.status, w.Code)
			require.True(t, json.Valid(w.Body.Bytes()))
		})
	}
}

func TestRefuseHidesOtherErrors(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	var logs bytes.Buffer
	web.Refuse(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), slog.New(slog.NewTextHandler(&logs, nil)), errors.New("SECRET"))
	require.Contains(t, logs.String(), "SECRET")
	require.Equal(t, http.StatusInternalServerError, w.Code)
	require.NotContains(t, w.Body.String(), "SECRET")
}

func TestSender(t *testing.T) {
	t.Parallel()
	const own, dev, evil = "http://localhost:8080", "http://localhost:4200", "https://evil.example"
	allowed := origins(t, dev)
	for _, tc := range []struct {
		name, method, origin, site string
		form, ok                   bool
	}{
		{"no browser", "POST", "", "", false, true},
		{"own page", "POST", own, "same-origin", false, true},
		{"own page, old browser", "POST", own, "", false, true},
		{"own origin after a detour", "POST", own, "cross-site", false, false},
		{"allowed origin", "POST", dev, "same-site", false, true},
		{"other site", "POST", evil, "cross-site", false, false},
		{"other site, form route", "POST", evil, "cross-site", true, false},
		{"other port", "POST", "http://localhost:9999", "same-site", false, false},
		{"cross-site without origin", "POST", "", "cross-site", false, false},
		{"same-site without origin", "DELETE", "", "same-site", false, false},
		{"null on API", "POST", "null", "same-origin", false, false},
		{"null of our own form", "POST", "null", "same-origin", true, true},
		{"null of an old browser's form", "POST", "null", "", true, true},
		{"null of a sandboxed frame", "POST", "null", "cross-site", true, false},
		{"read by other site", "GET", evil, "cross-site", false, false},
		{"link from other site", "GET", "", "cross-site", false, true},
		{"link to a page", "GET", "", "cross-site", true, true},
		{"redirect to a page", "GET", "null", "cross-site", true, true},
		{"preflight of other site", "OPTIONS", evil, "cross-site", false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequestWithContext(t.Context(), tc.method, "/", nil)
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
			if tc.site != "" {
				r.Header.Set("Sec-Fetch-Site", tc.site)
			}
			require.Equal(t, tc.ok, web.Sender{Own: own, Allowed: allowed, Form: tc.form}.Allows(r))
		})
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	r.Header["Origin"] = []string{own, evil}
	require.False(t, web.Sender{Own: own, Form: true}.Allows(r))
}

func TestCookies(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{true, false} {
		c := web.Cookies{Secure: secure}
		w := httptest.NewRecorder()
		require.True(t, c.Set(w, "a", auth.NewSecret("v"), 90*time.Second))
		line := w.Header().Get("Set-Cookie")
		if secure {
			require.Equal(t, "__Host-a=v; Path=/; Max-Age=90; HttpOnly; Secure; SameSite=Lax", line)
		} else {
			require.Equal(t, "a=v; Path=/; Max-Age=90; HttpOnly; SameSite=Lax", line)
		}
		require.Equal(t, c.Name("a"), c.Name(c.Name("a")))
		require.False(t, c.Set(w, "b", auth.NewSecret("no\nvalue"), 0))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set("Cookie", c.Name("a")+"=v")
		require.Equal(t, "v", c.Value(r, "a").Reveal())
		r.Header.Set("Cookie", c.Name("a")+"=v; "+c.Name("a")+"=planted")
		require.True(t, c.Value(r, "a").IsZero())
	}
}

func TestCSRF(t *testing.T) {
	t.Parallel()
	_, err := web.NewCSRF(auth.NewSecret("short"), web.Cookies{})
	require.Error(t, err)
	key := auth.NewSecret(strings.Repeat("k", web.MinKey))
	c, err := web.NewCSRF(key, web.Cookies{})
	require.NoError(t, err)
	twin, err := web.NewCSRF(key, web.Cookies{})
	require.NoError(t, err)
	other, err := web.NewCSRF(auth.Secret{}, web.Cookies{})
	require.NoError(t, err)

	w := httptest.NewRecorder()
	token := c.Token(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), "R1", "me")
	cookie := w.Result().Cookies()[0]
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
	require.False(t, c.Valid(r, token, "R1", "me"), "no cookie")
	r.Header.Set("Cookie", cookie.Name+"="+cookie.Value)
	require.True(t, c.Valid(r, token, "R1", "me"))
	require.True(t, twin.Valid(r, token, "R1", "me"), "another server with the same key")
	require.False(t, other.Valid(r, token, "R1", "me"))
	require.False(t, c.Valid(r, "", "R1", "me"))
	require.False(t, c.Valid(r, token, "R2", "me"))
	require.False(t, c.Valid(r, token, "R1", "you"))
	require.False(t, c.Valid(r, token, "R1m", "e"))

	w = httptest.NewRecorder()
	require.Equal(t, token, c.Token(w, r, "R1", "me"), "a second tab keeps the first one's form valid")
	require.Empty(t, w.Header().Get("Set-Cookie"))
}

func TestPrefetch(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	require.False(t, web.Prefetch(r))
	for name, value := range map[string]string{"Sec-Purpose": "prefetch;prerender", "Purpose": "prefetch", "X-Moz": "prefetch"} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header.Set(name, value)
		require.True(t, web.Prefetch(r), name)
	}
}

func TestSlowBodies(t *testing.T) {
	t.Parallel()
	const limit = 100 * time.Millisecond
	read := make(chan error, 1)
	s := httptest.NewServer(web.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var v any
		if err := web.Decode(r, &v, 100); err != nil {
			read <- err
			web.Refuse(w, r, slog.New(slog.DiscardHandler), err)
			return
		}
		// The limit is for the body alone: an answer may take longer, and its client is still there.
		select {
		case <-time.After(3 * limit):
			read <- nil
		case <-r.Context().Done():
			read <- r.Context().Err()
		}
	}), web.BodyTimeout(limit), web.Cap(100)))
	defer s.Close()

	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = conn.Write([]byte("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{"))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.ErrorIs(t, <-read, os.ErrDeadlineExceeded)

	for range 2 { // the second one on the same connection
		resp, err = s.Client().Post(s.URL, "application/json", strings.NewReader("{}")) //nolint:noctx // ends with the server
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.NoError(t, <-read)
	}
}
