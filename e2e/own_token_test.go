package e2e_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// An app's own token (client credentials): nobody is asked, the token is for the server, it is fetched once for many calls and
// runs of a user, and once more when it is revoked. A provider that does not know the client is a set-up problem.
func TestOwnToken(t *testing.T) {
	t.Parallel()
	const secret = demo.DefaultMark + "own-secret"
	p, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, p.Start("")) // reserves the address that the definition names
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	o := single(call("whoami") + text("{{response.whoami}}") + call("whoami") + text("again"))
	o.open, o.provider = false, p
	o.agents["assistant/root_agent.yaml"] += `      auth_credential:
        auth_type: oauth2
        oauth2:
          client_id: nightly
          client_secret: ${env:TARRY_SECRET_CLIENT}
      tarry: {issuer: "` + p.Issuer() + `", grant: client_credentials, max_scopes: [tickets:read, tickets:write]}
`
	o.env = []string{"TARRY_SECRET_CLIENT=" + secret}
	w := newWorld(t, o)
	unknown := w.api.start("assistant", "Who am I?")
	w.logged(stack.Worker, "does not know client")
	require.Empty(t, asks(unknown.events()))
	w.api.call("POST", unknown.path("/cancel"), nil, nil)

	p.AddClient(demo.Client{ID: "nightly", Secret: secret, AuthMethod: demo.AuthBasic, GrantTypes: []string{"client_credentials"}})
	before := p.Counts().TokenOK["client_credentials"]
	for range 2 {
		r := w.api.start("assistant", "Who am I?")
		s := w.finished(r)
		require.Equal(t, "done", s.InvocationStatus)
		require.Contains(t, s.Answer, "client nightly")
		require.Empty(t, asks(r.events()))
	}
	require.Equal(t, before+1, p.Counts().TokenOK["client_credentials"])
	for _, r := range p.Requests() {
		if strings.HasSuffix(r.Path, "/token") && r.Status == 200 {
			require.Equal(t, w.mcp.URL(), r.Params.Get("resource"))
		}
	}
	p.RevokeAccessTokens()
	require.Contains(t, w.finished(w.api.start("assistant", "And now?")).Answer, "client nightly")
	require.Equal(t, before+2, p.Counts().TokenOK["client_credentials"])
}

// logged waits for a text in a program's log.
func (w *world) logged(program stack.Name, text string) {
	w.t.Helper()
	w.eventually("the log does not say "+text, func() bool {
		body, err := os.ReadFile(w.LogFile(program))
		require.NoError(w.t, err)
		return strings.Contains(string(body), text)
	})
}
