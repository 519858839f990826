package demo_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/safehttp"
)

// TestSDKClientLogsIn has a client that nobody here wrote: discovery, registration, login, and step-up.
func TestSDKClientLogsIn(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]demo.ProviderConfig{
		"root issuer": {},
		"path issuer": {IssuerPath: "/tenant"},
		"OIDC only":   {Faults: demo.Faults{NoMetadata: true, OIDCMetadata: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, cfg)
			m, err := demo.NewMCPServer(demo.MCPConfig{Provider: p})
			require.NoError(t, err)
			require.NoError(t, m.Start(""))
			t.Cleanup(func() { require.NoError(t, m.Close()) })

			const redirect = "http://127.0.0.1:1/callback"
			b := demo.NewBrowser()
			b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), redirect) }
			guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
			t.Cleanup(guarded.CloseIdleConnections)
			handler, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
				Client:      guarded.HTTP(),
				RedirectURL: redirect,
				DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
					RedirectURIs: []string{redirect}, TokenEndpointAuthMethod: demo.AuthNone, ClientName: "SDK",
				}},
				AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
					page, err := b.Login(ctx, args.URL, "alice", "alice-password")
					if err != nil {
						return nil, err
					}
					q := page.URL.Query()
					return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
				},
			})
			require.NoError(t, err)
			client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
				Endpoint: m.URL(), HTTPClient: guarded.Streaming(), OAuthHandler: handler, MaxRetries: -1, DisableStandaloneSSE: true,
			}, nil)
			require.NoError(t, err)
			t.Cleanup(func() { _ = session.Close() })

			res, err := call(t.Context(), session, "create_plan", map[string]any{"title": "Autumn"}, "k")
			require.NoError(t, err)
			require.False(t, res.IsError)
			require.Equal(t, 1, p.Counts().Approvals)

			res, err = call(t.Context(), session, "publish_plan", map[string]any{"plan": "plan-1"}, "k2")
			require.NoError(t, err)
			require.False(t, res.IsError)
			require.Equal(t, 2, p.Counts().Approvals, "wider scopes ask again")
			require.Equal(t, 1, p.Counts().Logins)
			require.Len(t, m.Effects(), 2)
			for _, r := range m.Requests() {
				if r.Tool == "publish_plan" {
					require.Equal(t, http.StatusForbidden, r.Status, "the first attempt was refused before it ran")
					break
				}
			}
		})
	}
}
