package oauth_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
	"tarry/internal/demo"
	"tarry/internal/safehttp"
)

// movable is the issuer that an MCP server trusts at the moment.
type movable struct{ at atomic.Pointer[demo.Provider] }

func (m *movable) Issuer() string                         { return m.at.Load().Issuer() }
func (m *movable) Verify(token string) (demo.Token, bool) { return m.at.Load().Verify(token) }

// A server changes its provider (SEP-2352): nothing that the first one gave, client or token, is shown to the second.
func TestNothingOfOneProviderGoesToAnother(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		auth agent.Auth
		says string // what stands in the way; empty: a new login
	}{
		"dynamic client": {},
		"client of the first": {
			auth: agent.Auth{Type: agent.AuthMCP, ClientID: "known"}, says: `{second} now, and client "known" was good at {first}`,
		},
		"client with issuer": {
			auth: agent.Auth{Type: agent.AuthMCP, ClientID: "known", ClientSecret: "${env:TARRY_SECRET_CLIENT}", Issuer: "{issuer}"},
			says: "protected by {second}, and the definition's client belongs to {first}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			start := func() *demo.Provider {
				p, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{AutoApprove: "alice"}})
				require.NoError(t, err)
				require.NoError(t, p.Start(""))
				t.Cleanup(func() { require.NoError(t, p.Close()) })
				return p
			}
			first, second := start(), start()
			host := func(p *demo.Provider) string { return strings.TrimPrefix(p.URL(), "http://") }
			trusted := &movable{}
			trusted.at.Store(first)
			m, err := demo.NewMCPServer(demo.MCPConfig{Provider: trusted})
			require.NoError(t, err)
			require.NoError(t, m.Start(""))
			t.Cleanup(func() { require.NoError(t, m.Close()) })
			guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
			t.Cleanup(guarded.CloseIdleConnections)
			w := newWorld(t)
			w.clock = time.Now()
			w.service = w.newService(func(c *oauth.Config) {
				c.HTTP = guarded.HTTP()
				c.Discover = &discovery.Discoverer{HTTP: guarded.HTTP(), AllowLoopback: true}
			})
			want := auth.Want{Auth: tc.auth, Server: m.URL(), Tool: "tool"}
			client := demo.Client{ID: "known", RedirectURIs: []string{"http://localhost:8080" + oauth.CallbackPath(first.Issuer())}}
			if want.Auth.Issuer != "" {
				want.Auth.Issuer, client.Secret = first.Issuer(), "s+cr/t:1"
			}
			first.AddClient(client)
			login := func(id string, n auth.Need) auth.AccessToken {
				w.ask(id, n)
				s, cookies := w.begin(id)
				cb := visit(t, s.RedirectURL)
				cb.Cookies = cookies
				_, err := w.service.Complete(t.Context(), only(ann), cb)
				require.NoError(t, err)
				token, err := w.broker().Token(t.Context(), want)
				require.NoError(t, err)
				status, _ := call(t, m.URL(), token)
				require.Equal(t, http.StatusOK, status)
				return token
			}
			refused := func(token auth.AccessToken) error {
				status, header := call(t, m.URL(), token)
				require.Equal(t, http.StatusUnauthorized, status)
				return w.broker().Challenged(t.Context(), want, auth.Challenge{Status: status, WWWAuthenticate: header, Used: token.Version})
			}
			one := login("R", required(t, refused(auth.AccessToken{})))

			trusted.at.Store(second)
			// The first provider still refreshes what it gave; the server does not take that either.
			require.NoError(t, refused(one))
			two, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			b := w.broker()
			status, header := call(t, m.URL(), two)
			require.Equal(t, http.StatusUnauthorized, status)
			require.NoError(t, b.Challenged(t.Context(), want, auth.Challenge{Status: status, Used: two.Version}))
			three, err := b.Token(t.Context(), want)
			require.NoError(t, err)
			err = b.Challenged(t.Context(), want, auth.Challenge{Status: status, WWWAuthenticate: header, Used: three.Version})
			if tc.says != "" {
				require.ErrorIs(t, err, auth.ErrMisconfigured)
				require.ErrorContains(t, err, strings.NewReplacer("{first}", host(first), "{second}", host(second)).Replace(tc.says))
			} else {
				n := required(t, err)
				require.Equal(t, second.Issuer(), n.Slot.Issuer)
				require.Zero(t, n.Refused, "versions of the other slot say nothing here")
				four := login("S", n)
				require.NotEqual(t, three.Access.Reveal(), four.Access.Reveal())
			}
			for _, r := range second.Requests() {
				for _, shown := range append(first.Clients(), first.Secrets().All()...) {
					require.NotContains(t, r.Params.Encode(), url.QueryEscape(shown))
				}
			}
		})
	}
}
