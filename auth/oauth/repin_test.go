package oauth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
)

// The server moves to another provider while people are asked: the page must be shown again, with the new host, before
// anything is sent anywhere, and the login there answers the request.
func TestProviderThatChangesBeforeTheLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	_, err := w.service.Begin(t.Context(), only(ann), "R", "")
	require.NoError(t, err, "nothing has changed yet")
	other := newProvider(t)
	w.provider.set(func(p *provider) { p.servers = []string{other.URL} })

	_, err = w.service.Begin(t.Context(), only(ann), "R", "")
	require.ErrorIs(t, err, oauth.ErrMoved)
	require.Empty(t, other.register, "nothing is registered before the person has seen it")
	page, err := w.service.Page(t.Context(), only(ann), "R")
	require.NoError(t, err)
	require.Equal(t, discovery.Host(other.URL), page.ProviderHost)
	require.Equal(t, other.URL, page.Request.Need.Slot.Issuer)
	require.Contains(t, w.logs.String(), "names another provider")

	s, cookies := w.begin("R")
	cb := other.approve(s.RedirectURL)
	cb.Cookies = cookies
	require.Equal(t, oauth.CallbackDigest(other.URL), cb.Digest)
	out, err := w.service.Complete(t.Context(), only(ann), cb)
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
	require.Empty(t, w.provider.tokenRequests())
	_, err = w.broker().Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
}

func TestProviderIsKept(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		want   func(*world) auth.Want
		change func(w *world, other string)
		logged string
	}{
		"the server is down": {(*world).mcpWant, func(w *world, _ string) { w.provider.hide = true }, "provider not looked up again"},
		"the new provider is down": {(*world).mcpWant, func(w *world, _ string) {
			w.provider.servers = []string{"http://127.0.0.1:1"}
		}, "provider not looked up again"},
		"another is named beside it": {(*world).mcpWant, func(w *world, other string) {
			w.provider.servers = []string{other, w.provider.URL}
		}, ""},
		"endpoints are written out": {(*world).explicitWant, func(w *world, other string) { w.provider.servers = []string{other} }, ""},
		"the definition names the client": {func(w *world) auth.Want {
			want := w.mcpWant()
			want.Auth = agent.Auth{Type: agent.AuthMCP, ClientID: "client", ClientSecret: "${env:TARRY_SECRET_CLIENT}", Issuer: w.provider.URL}
			return want
		}, func(w *world, other string) { w.provider.servers = []string{other} }, ""},
		"the definition names the issuer": {func(w *world) auth.Want {
			want := w.mcpWant()
			want.Auth = agent.Auth{Type: agent.AuthMCP, Issuer: w.provider.URL}
			return want
		}, func(w *world, other string) { w.provider.servers = []string{other} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(tc.want(w)))
			other := newProvider(t)
			w.provider.set(func(*provider) { tc.change(w, other.URL) })
			out, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
			require.NoError(t, err)
			require.Equal(t, auth.StatusGranted, out.Outcome)
			if tc.logged == "" {
				require.NotContains(t, w.logs.String(), "looked up again")
			} else {
				require.Contains(t, w.logs.String(), tc.logged)
			}
		})
	}
}

// The second look goes where the challenge had said that the metadata is.
func TestSecondLookAtTheMetadataOfTheChallenge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.metadataAt = "/elsewhere"
	header := []string{`Bearer resource_metadata="` + w.provider.URL + `/elsewhere"`}
	n := required(t, w.broker().Challenged(t.Context(), w.mcpWant(), auth.Challenge{Status: 401, WWWAuthenticate: header}))
	w.ask("R", n)
	other := newProvider(t)
	w.provider.set(func(p *provider) { p.servers = []string{other.URL} })
	_, err := w.service.Begin(t.Context(), only(ann), "R", "")
	require.ErrorIs(t, err, oauth.ErrMoved)
}

// A provider that the server has moved to and that Tarry cannot be registered at is an operator's business.
func TestProviderThatCannotBeUsedAfterAMove(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	other := newProvider(t)
	other.noRegistration = true
	w.provider.set(func(p *provider) { p.servers = []string{other.URL} })
	_, err := w.service.Begin(t.Context(), only(ann), "R", "")
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.ErrorContains(t, err, "client_id")
}

// A person does not wait for a server that does not answer.
func TestSecondLookThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	w.provider.set(func(p *provider) { p.hang = true })
	began := time.Now()
	_, err := w.service.Begin(t.Context(), only(ann), "R", "")
	require.NoError(t, err)
	require.Less(t, time.Since(began), 8*time.Second)
	require.Contains(t, w.logs.String(), "provider not looked up again")
}

// A server that changes its mind all the time gets nobody anywhere that was not shown, and answers of logins that were
// begun before are not exchanged.
func TestProviderThatFlips(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ask("R", w.needOf(w.mcpWant()))
	other := newProvider(t)
	begun := w.callback("R")
	for i := range 3 {
		for _, servers := range [][]string{{other.URL}, {w.provider.URL}} {
			w.provider.set(func(p *provider) { p.servers = servers })
			_, err := w.service.Begin(t.Context(), only(ann), "R", "")
			require.ErrorIs(t, err, oauth.ErrMoved, i)
			page, err := w.service.Page(t.Context(), only(ann), "R")
			require.NoError(t, err)
			require.Equal(t, discovery.Host(servers[0]), page.ProviderHost)
		}
	}
	_, err := w.service.Complete(t.Context(), only(ann), begun)
	require.Error(t, err)
	require.Empty(t, w.provider.tokenRequests())
	require.Empty(t, other.tokenRequests())
	out, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, out.Outcome)
}
