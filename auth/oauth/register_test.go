package oauth_test

import (
	"errors"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

func clientOf(t *testing.T, s *oauth.Started) string {
	t.Helper()
	u, err := url.Parse(s.RedirectURL)
	require.NoError(t, err)
	return u.Query().Get("client_id")
}

// A provider that has forgotten our client shows a page of its own and sends nobody back: all that is seen of it is
// logins that come to nothing.
func TestClientThatLeadsNowhereIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	begin := func(id string) string {
		s, _ := w.begin(id)
		w.pass(time.Minute)
		return clientOf(t, s)
	}
	old := begin("R")
	require.Equal(t, old, begin("R"), "once is a closed tab")
	next := begin("R")
	require.NotEqual(t, old, next)
	require.Contains(t, w.logs.String(), "client registered anew")
	for range 4 {
		require.Equal(t, next, begin("R"), "not again within the hour")
	}
	// Another request has its own experience of the new client.
	w.ask("Q", w.needOf(w.mcpWant()))
	require.Equal(t, next, begin("Q"))
	require.Len(t, w.provider.register, 2)
	w.pass(time.Hour)
	require.NotEqual(t, next, begin("R"))
	require.Len(t, w.provider.register, 3)
	cb := w.callback("R")
	out, err := w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}

// Logins that the provider answered, whatever it said, are no sign of a lost client.
func TestAnsweredLoginsKeepTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	for range 4 {
		cb := w.callback("R")
		cb.Code, cb.Error = "", "server_error"
		_, err := w.service.Complete(t.Context(), only(ann), cb)
		require.Error(t, err)
	}
	require.Len(t, w.provider.register, 1)
}

// The public URL changes: the client that is registered with the old redirect URI is of no use.
func TestNewCallbackOriginRegistersAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	first, _ := w.begin("R")
	w.service = w.newService(func(c *oauth.Config) {
		public, err := url.Parse("https://tarry.example")
		require.NoError(t, err)
		c.PublicURL = public
	})
	second, _ := w.begin("R")
	require.NotEqual(t, clientOf(t, first), clientOf(t, second))
	require.Len(t, w.provider.register, 2)
	require.Equal(t, "native", w.provider.register[0]["application_type"])
	require.Equal(t, "web", w.provider.register[1]["application_type"])
	require.Equal(t, []any{"https://tarry.example" + oauth.CallbackPath(w.provider.URL)}, w.provider.register[1]["redirect_uris"])
	third, _ := w.begin("R")
	require.Equal(t, clientOf(t, second), clientOf(t, third))
}

// Two processes find no client and register at once; one of the two clients is used by both.
func TestTwoProcessesEndWithOneClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var both sync.WaitGroup
	both.Add(2)
	w.provider.onRegister = func() { both.Done(); both.Wait() } // answered when both have asked
	var mu sync.Mutex
	clients := map[string]int{}
	var work sync.WaitGroup
	for _, id := range []string{"R", "Q"} {
		w.ask(id, w.needOf(w.mcpWant()))
		process := w.newService()
		work.Go(func() {
			s, err := process.Begin(t.Context(), only(ann), id, "")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			clients[clientOf(t, s)]++
		})
	}
	work.Wait()
	require.Len(t, w.provider.register, 2)
	require.Len(t, clients, 1)
}

func TestProviderWithoutRefreshTokensRegisters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.noRefresh = true
	w.login(w.mcpWant())
	require.Len(t, w.provider.register, 2)
	require.Equal(t, []any{"authorization_code", "refresh_token"}, w.provider.register[0]["grant_types"])
	require.Equal(t, []any{"authorization_code"}, w.provider.register[1]["grant_types"])
}

func TestRefusedRegistration(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status int
		body   string
		err    error
		says   string
	}{
		"redirect URI":  {400, `{"error":"invalid_redirect_uri","error_description":"<script>"}`, auth.ErrMisconfigured, "does not register this client (invalid_redirect_uri): register it by hand with the redirect URI http://localhost:8080/oauth/callback/"},
		"strange code":  {400, `{"error":"<script>"}`, auth.ErrMisconfigured, "does not register this client (unrecognized)"},
		"closed":        {403, `<html>`, auth.ErrMisconfigured, "HTTP 403 without a client: register it by hand"},
		"no client":     {201, `{}`, auth.ErrMisconfigured, "HTTP 201 without a client"},
		"null client":   {201, `{"client_id":null}`, auth.ErrMisconfigured, "HTTP 201 without a client"},
		"list":          {201, `[]`, auth.ErrMisconfigured, "HTTP 201 without a client"},
		"down":          {503, `{"error":"invalid_redirect_uri"}`, auth.ErrUnavailable, "HTTP 503"},
		"busy":          {429, ``, auth.ErrUnavailable, "HTTP 429"},
		"with 200":      {200, `{"client_id":"c"}`, nil, ""},
		"with nulls":    {201, `{"client_id":"c","client_secret":null,"client_secret_expires_at":null,"token_endpoint_auth_method":null}`, nil, ""},
		"never expires": {201, `{"client_id":"c","client_secret":"s","client_secret_expires_at":0}`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.registerRaw = func() (int, string) { return tc.status, tc.body }
			w.ask("R", w.needOf(w.mcpWant()))
			s, err := w.service.Begin(t.Context(), only(ann), "R", "")
			if tc.err == nil {
				require.NoError(t, err)
				require.Equal(t, "c", clientOf(t, s))
				return
			}
			require.ErrorIs(t, err, tc.err)
			require.ErrorContains(t, err, tc.says)
			require.NotContains(t, err.Error(), "script")
		})
	}
}

// A provider that never answers a registration keeps nobody before a blank page, in the first place or behind others.
func TestRegistrationIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	w.service = w.newService(func(c *oauth.Config) {
		client := *c.HTTP
		client.Transport = silent{next: c.HTTP.Transport, path: w.provider.URL + "/register"}
		c.HTTP, c.RegisterTimeout = &client, 50*time.Millisecond
	})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := w.service.Begin(t.Context(), only(ann), "R", ""); !errors.Is(err, auth.ErrUnavailable) {
				t.Errorf("%v is not that it may be tried again", err)
			}
		})
	}
	all.Wait()
	require.Equal(t, auth.StatusPending, w.store.status("R"))
	w.service = w.newService()
	w.login(w.mcpWant())
}

// silent holds requests to one URL back for as long as somebody waits for the answer.
type silent struct {
	next http.RoundTripper
	path string
}

// RoundTrip implements http.RoundTripper.
func (s silent) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.String() == s.path {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return s.next.RoundTrip(r)
}
