//go:build adkweb

package adkweb_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/server/signin"
)

// signedIn is the story of a person at a server that signs people in.
func signedIn(t *testing.T) (*world, []scenario) {
	t.Helper()
	identity, err := demo.NewProvider(demo.ProviderConfig{Name: "Company ID", Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, identity.Start(""))
	t.Cleanup(func() { require.NoError(t, identity.Close()) })
	w := newWorld(t, "TARRY_SIGNIN=oidc", "TARRY_OIDC_ISSUER="+identity.Issuer(), "TARRY_OIDC_CLIENT_ID=tarry", "TARRY_OIDC_CLIENT_SECRET=adkweb", "TARRY_OIDC_ALLOW=*")
	identity.AddClient(demo.Client{ID: "tarry", Secret: "adkweb", RedirectURIs: []string{w.URL() + signin.CallbackPath}})
	answered := func(p *play) { p.main.sees(answer); require.Equal(p.t, 1, p.main.rows("app-event-row.bot", answer)) }
	return w, []scenario{{"signed in", []step{
		{"whoever opens the UI is sent to sign in", func(p *play) {
			p.main = p.profile(p)
			p.app, p.user = "planner", "me"
			p.main.open(p.URL() + "/")
			p.main.sees("Company ID")
			p.main.signsIn("bob")
			p.main.click("button[value=approve]", "")
		}},
		{"the UI opens with the person's own user id", func(p *play) {
			p.main.sees("Select an agent to begin.")
			require.Contains(p.t, p.main.address(), "userId=me")
			p.main.click("button", "Select an app")
			p.main.click(".app-selector-item", "planner")
			p.main.sees("NEW SESSION")
		}},
		sends(wish),
		{"the popup opens, for the person who has signed in", func(p *play) {
			p.popup = p.main.opened()
			p.popup.sees("An agent waits for your login.")
			require.Contains(p.t, p.popup.text(), "Bob")
		}},
		logsIn(),
		{"the loop goes on to its answer", answered},
		{"the session is there after a reload", func(p *play) {
			popups := p.main.opening()
			p.main.reload()
			p.main.closesByItself(popups)
			answered(p)
		}},
	}}}
}
