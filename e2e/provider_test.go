package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
	"tarry/internal/demo"
)

// explicit is the auth_scheme of a provider without discovery, with a client that was registered by hand.
func explicit(kind, endpoints string) string {
	return `      auth_scheme:
        type: ` + kind + `
` + indent(endpoints, "        ") + `      auth_credential:
        auth_type: ` + kind + `
        oauth2:
          client_id: by-hand
          client_secret: ${env:TARRY_SECRET_CLIENT}
      credential_key: by-hand
`
}

// Providers without discovery or registration (the shape of GitHub), and OpenID Connect with written endpoints: a client
// with a secret, form-encoded answers, no refresh token, errors with status 200.
func TestExplicitProviders(t *testing.T) {
	t.Parallel()
	const secret = demo.DefaultMark + "client-secret"
	for name, tc := range map[string]struct{ kind, endpoints string }{
		"oauth2": {"oauth2", "flows:\n  authorizationCode:\n    authorizationUrl: %s\n    tokenUrl: %s\n    scopes:\n      tickets:read: read\n"},
		"openid": {"openIdConnect", "authorization_endpoint: %s\ntoken_endpoint: %s\nscopes: [tickets:read]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := demo.NewProvider(demo.ProviderConfig{})
			require.NoError(t, err)
			require.NoError(t, p.Start("")) // reserves the address that the definitions name
			t.Cleanup(func() { require.NoError(t, p.Close()) })
			o := single(call("list_tickets") + text("ok"))
			o.provider = p
			o.agents["assistant/root_agent.yaml"] += explicit(tc.kind, fmt.Sprintf(tc.endpoints, p.AuthorizeURL(), p.TokenURL()))
			o.env = []string{"TARRY_SECRET_CLIENT=" + secret}
			p.SetFaults(func(f *demo.Faults) { *f = demo.GitHubShape() })
			w := newWorld(t, o)
			w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.AnyAudience = true })
			origin := strings.TrimSuffix(p.TokenURL(), "/token")
			p.AddClient(demo.Client{
				ID: "by-hand", Secret: secret, AuthMethod: demo.AuthBasic, GrantTypes: []string{"authorization_code"},
				RedirectURIs: []string{w.URL() + oauth.CallbackPath(origin)},
			})
			r := w.api.start("assistant", "Go.")
			w.login(w.waiting(r))
			require.Equal(t, "done", w.finished(r).InvocationStatus)
			require.Len(t, w.mcp.Calls("list_tickets"), 1)
			require.Equal(t, "done", w.finished(w.api.start("assistant", "Again.")).InvocationStatus)
			require.Len(t, asks(r.events()), 1)
		})
	}
}

// The job runs on models that speak a provider's wire.
func TestModelsByPrefix(t *testing.T) {
	t.Parallel()
	const key = demo.DefaultMark + "model-key"
	for name, tc := range map[string]struct {
		model, key, base string
		answers          []string
	}{
		"openai": {"openai/gpt-test", "OPENAI_API_KEY", "OPENAI_BASE_URL", []string{
			`{"id":"1","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"list_tickets","arguments":"{}"}}]}}]}`,
			`{"id":"2","object":"chat.completion","model":"gpt-test","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"It works."}}]}`,
		}},
		"gemini": {"gemini/gemini-test", "GEMINI_API_KEY", "GEMINI_BASE_URL", []string{
			`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"list_tickets","args":{}}}]},"finishReason":"STOP"}]}`,
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"It works."}]},"finishReason":"STOP"}]}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newWireModel(t, tc.answers)
			o := single("")
			o.script = "agents: [{agent: assistant, steps: [{text: unused}]}]\n"
			o.agents["assistant/root_agent.yaml"] = strings.Replace(assistant(""), "${var:MODEL}", tc.model, 1)
			o.worker = []string{tc.key + "=" + key, tc.base + "=" + model.url}
			w := newWorld(t, o)
			r := w.api.start("assistant", "Go.")
			w.login(w.waiting(r))
			require.Equal(t, "It works.", w.finished(r).Answer)
			require.EqualValues(t, 2, model.calls.Load())
			require.Contains(t, model.keys(), key)
			require.NotContains(t, string(r.history()), demo.DefaultMark)
		})
	}
}

// A message to an app that no worker runs is refused with a word about what to do.
func TestUnknownApp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(text("ok")))
	require.Equal(t, http.StatusNotFound, w.api.call("POST", "/apps/nobody/users/user/runs", map[string]string{"task": "Go."}, nil))
}
