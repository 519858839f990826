package signin_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/vault"
	"tarry/internal/demo"
	"tarry/internal/safehttp"
	"tarry/server/openapi/openapitest"
	"tarry/server/signin"
	"tarry/server/web"
	"tarry/store"
	"tarry/store/storetest"
)

const (
	clientID     = "tarry"
	clientSecret = demo.DefaultMark + "client-secret"
	audience     = "https://tarry.example/api"
)

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// world is a server with pages and an API behind a gate, and a provider.
type world struct {
	database string
	t        *testing.T
	provider *demo.Provider
	url      string
	logs     *logBuffer
	dir      string
	store    *store.Store
	clock    atomic.Int64 // added to the time
	// reached counts requests that came through.
	reached atomic.Int32
}

type sealer struct{ v *vault.Vault }

func (s sealer) Seal(plain auth.Secret, place string) ([]byte, error) {
	return s.v.Seal(plain, vault.AD{Row: place, Column: "sign-in"})
}

func (s sealer) Open(cipher []byte, place string) (auth.Secret, error) {
	return s.v.Open(cipher, vault.AD{Row: place, Column: "sign-in"})
}

func newWorld(t *testing.T, change func(*signin.Config)) *world {
	t.Helper()
	w := &world{t: t, logs: &logBuffer{}, dir: t.TempDir()}
	var err error
	w.provider, err = demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, w.provider.Start(""))
	t.Cleanup(func() { require.NoError(t, w.provider.Close()) })
	w.database = storetest.URL(t)
	w.store, err = store.Open(t.Context(), w.database)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.store.Close()) })
	w.store.SetClock(w.now)
	w.url = w.serve(change)
	w.provider.AddClient(demo.Client{ID: clientID, Secret: clientSecret, RedirectURIs: []string{w.url + signin.CallbackPath}})
	return w
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.clock.Load())) }

func (w *world) pass(d time.Duration) { w.clock.Add(int64(d)) }

// serve starts one server on the world's store.
func (w *world) serve(change func(*signin.Config)) string {
	w.t.Helper()
	v, err := vault.Open(w.t.Context(), vault.Config{KeysetFile: filepath.Join(w.dir, "keyset.json"), Checks: w.store})
	require.NoError(w.t, err)
	key, err := v.NamedKey(w.t.Context(), "form-tokens")
	require.NoError(w.t, err)
	client := safehttp.New(safehttp.Config{AllowLoopback: true})
	w.t.Cleanup(client.CloseIdleConnections)
	mux := http.NewServeMux()
	log := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	srv := httptest.NewUnstartedServer(web.Chain(mux, web.RequestIDs(), web.AccessLog(log)))
	public, err := url.Parse("http://" + srv.Listener.Addr().String())
	require.NoError(w.t, err)
	c := signin.Config{
		PublicURL: public, Log: log,
		OIDC: &signin.OIDC{
			Issuer: w.provider.Issuer(), ClientID: clientID, ClientSecret: auth.NewSecret(clientSecret), Scopes: []string{"openid", "profile"},
			Allow: everybody(w.t), Idle: time.Hour, Lifetime: 4 * time.Hour, Key: auth.NewSecret(string(key)), Sessions: w.store, Sealer: sealer{v}, HTTP: client.HTTP(), Now: w.now,
		},
		JWT: &signin.JWT{Issuers: []string{w.provider.Issuer()}, Audiences: []string{audience}, HTTP: client.HTTP(), Now: w.now},
	}
	if change != nil {
		change(&c)
	}
	gate, err := signin.New(c)
	require.NoError(w.t, err)
	pages := http.NewServeMux()
	gate.Mount(pages)
	mux.Handle("/", openapitest.Check(w.t, pages))
	answer := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.reached.Add(1)
		p := signin.FromContext(r.Context())
		web.JSON(rw, http.StatusOK, map[string]string{"user": p.User, "name": p.Name, "mode": p.Mode, "service": p.Service, "subject": p.Subject, "uri": r.URL.RequestURI()})
	})
	mux.Handle("/api", gate.Require(signin.API)(answer))
	mux.Handle("/connect", gate.Require(signin.Forms)(answer))
	mux.Handle("/oauth/callback/{digest}", gate.Require(signin.Forms)(answer))
	srv.Start()
	w.t.Cleanup(srv.Close)
	return public.String()
}

type answer struct {
	status int
	header http.Header
	body   string
	json   map[string]string
}

// call sends a request as a program does.
func (w *world) call(method, path string, header http.Header) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, http.NoBody)
	require.NoError(w.t, err)
	for name, values := range header {
		r.Header[name] = values
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(r)
	require.NoError(w.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(w.t, err)
	a := answer{status: res.StatusCode, header: res.Header, body: string(body)}
	if json.Unmarshal(body, &a.json) != nil {
		a.json = nil
	}
	return a
}

// signIn opens a page and signs in on the way to it.
func (w *world) signIn(b *demo.Browser, path, user string) *demo.Page {
	w.t.Helper()
	page, err := b.Login(w.t.Context(), w.url+path, user, user+"-password")
	require.NoError(w.t, err)
	return page
}

func (w *world) open(b *demo.Browser, path string) *demo.Page {
	w.t.Helper()
	page, err := b.Open(w.t.Context(), w.url+path)
	require.NoError(w.t, err)
	return page
}

// toCallback signs in up to the provider's answer, which is not opened.
func (w *world) toCallback(b *demo.Browser, path, user string) string {
	w.t.Helper()
	b.StopAt = func(u *url.URL) bool { return u.Path == signin.CallbackPath }
	page := w.signIn(b, path, user)
	b.StopAt = nil
	require.Equal(w.t, signin.CallbackPath, page.URL.Path, page.Text)
	return page.URL.RequestURI()
}

// session is the cookie of a browser that has signed in.
func (w *world) session(b *demo.Browser) string {
	w.t.Helper()
	for _, c := range b.Cookies(w.url) {
		if c.Name == "tarry-session" {
			return c.Value
		}
	}
	return ""
}

func cidr(texts ...string) (out []netip.Prefix) {
	for _, text := range texts {
		out = append(out, netip.MustParsePrefix(text))
	}
	return out
}

func everybody(t *testing.T) signin.Allow {
	t.Helper()
	return allow(t, "*")
}

func allow(t *testing.T, rules ...string) signin.Allow {
	t.Helper()
	out, err := signin.ParseAllow(rules)
	require.NoError(t, err)
	return out
}
