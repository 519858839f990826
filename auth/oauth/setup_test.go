package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a service, its store and a provider, with a clock that stands until it is moved.
type world struct {
	t        *testing.T
	provider *provider
	store    *memoryStore
	vault    *vault.Vault
	service  *oauth.Service
	logs     *safeBuffer
	// another makes one more service like this one.
	another func() *oauth.Service

	mu    sync.Mutex
	clock time.Time
	woken int
	fault func(point string)
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

type checks struct {
	mu   sync.Mutex
	rows map[string][]byte
}

func (c *checks) Check(_ context.Context, name string, create func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.rows[name]; ok {
		return b, nil
	}
	b, err := create()
	if err == nil {
		c.rows[name] = b
	}
	return b, err
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, provider: newProvider(t), logs: &safeBuffer{}, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.store = newMemoryStore(w.now)
	var err error
	w.vault, err = vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(t.TempDir(), "keyset"), Checks: &checks{rows: map[string][]byte{}}})
	require.NoError(t, err)
	w.service = w.newService()
	return w
}

// newService is another process on the same store.
func (w *world) newService(change ...func(*oauth.Config)) *oauth.Service {
	w.t.Helper()
	public, err := url.Parse("http://localhost:8080/")
	require.NoError(w.t, err)
	cfg := oauth.Config{
		Store: w.store, Vault: w.vault, HTTP: w.provider.Client(),
		Discover: &discovery.Discoverer{HTTP: w.provider.Client(), AllowLoopback: true},
		Secrets: func(_ context.Context, s agent.Source) (auth.Secret, error) {
			if s.Name == "TARRY_SECRET_CLIENT" {
				return auth.NewSecret("s+cr/t:1"), nil
			}
			return auth.Secret{}, errors.New("not set")
		},
		PublicURL: public, ClientName: "Tarry", Now: w.now, Log: slog.New(slog.NewJSONHandler(w.logs, nil)),
		Wake: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.woken++
		},
		Fault: func(_ context.Context, point string) {
			w.mu.Lock()
			fault := w.fault
			w.mu.Unlock()
			if fault != nil {
				fault(point)
			}
		},
	}
	for _, c := range change {
		c(&cfg)
	}
	s, err := oauth.New(cfg)
	require.NoError(w.t, err)
	return s
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clock = w.clock.Add(d)
}

func (w *world) setFault(f func(point string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

func (w *world) wakes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.woken
}

var ann = agent.Owner{App: "app", User: "ann"}

func only(o agent.Owner) auth.Access { return func(other agent.Owner) bool { return o == other } }

// mcpWant is a tool of an MCP server that says by itself what it needs.
func (w *world) mcpWant() auth.Want {
	return auth.Want{Server: w.provider.mcp(), Tool: "tool", Toolset: "set"}
}

// explicitWant is a tool whose definition has the endpoints written out.
func (w *world) explicitWant() auth.Want {
	return auth.Want{Server: w.provider.mcp(), Tool: "tool", Toolset: "set", Auth: agent.Auth{
		Key: "key", Type: agent.AuthOAuth2, AuthorizationURL: w.provider.URL + "/authorize", TokenURL: w.provider.URL + "/token",
		ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}", Scopes: []string{"read"}, Resource: w.provider.mcp(),
	}}
}

func (w *world) broker() auth.Broker {
	return w.service.Broker(ann, oauth.Use{Session: "s", Agent: "a"}, nil)
}

// needOf lets a tool run into the missing credential.
func (w *world) needOf(want auth.Want) auth.Need {
	w.t.Helper()
	b := w.broker()
	_, err := b.Token(w.t.Context(), want)
	if errors.Is(err, auth.ErrNoToken) {
		err = b.Challenged(w.t.Context(), want, auth.Challenge{Status: 401, WWWAuthenticate: []string{"Bearer"}})
	}
	return required(w.t, err)
}

func required(t *testing.T, err error) auth.Need {
	t.Helper()
	var r *auth.RequiredError
	require.ErrorAs(t, err, &r)
	return r.Need
}

// ask opens a request for a need.
func (w *world) ask(id string, n auth.Need) {
	w.store.ask(auth.Request{ID: id, Owner: n.Slot.Owner, Need: n, Agent: "a"})
}

// begin presses the button and returns what the browser keeps: its cookie and where it was sent.
func (w *world) begin(id string) (*oauth.Started, func(string) string) {
	w.t.Helper()
	s, err := w.service.Begin(w.t.Context(), only(ann), id, "")
	require.NoError(w.t, err)
	return s, jar(s)
}

func jar(s *oauth.Started) func(string) string {
	return func(name string) string {
		if name == s.CookieName {
			return s.Cookie.Reveal()
		}
		return ""
	}
}

// callback is a whole visit at the provider.
func (w *world) callback(id string) oauth.Callback {
	w.t.Helper()
	s, cookies := w.begin(id)
	cb := w.provider.approve(s.RedirectURL)
	cb.Cookies = cookies
	return cb
}

// login does everything.
func (w *world) login(want auth.Want) auth.AccessToken {
	w.t.Helper()
	id := "req-" + random()
	w.ask(id, w.needOf(want))
	out, err := w.service.Complete(w.t.Context(), only(ann), w.callback(id))
	require.NoError(w.t, err)
	require.Equal(w.t, auth.StatusGranted, out.Outcome)
	token, err := w.broker().Token(w.t.Context(), want)
	require.NoError(w.t, err)
	return token
}
