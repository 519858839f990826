package signin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/internal/demo"
	"tarry/server/signin"
)

// Who came in, who left and who was not let in is written down, for those who may act for them.
func TestSignInIsAudited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *signin.Config) {
		c.OIDC.Allow, c.OIDC.Scopes = allow(t, demo.Email("alice")), []string{"openid", "email"}
	})
	b := demo.NewBrowser()
	w.signIn(b, signin.Path, "alice")
	_, err := b.Press(t.Context(), w.open(b, signin.Path), "sign out")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, w.signIn(demo.NewBrowser(), signin.Path, "bob").Status)
	require.Equal(t, http.StatusForbidden, w.open(demo.NewBrowser(), signin.CallbackPath+"?code=x&state=y").Status)
	alice, bob := signin.UserID(w.provider.Issuer(), demo.Subject("alice")), signin.UserID(w.provider.Issuer(), demo.Subject("bob"))
	read := func(access auth.Access) (out []string) {
		page, err := w.store.Audit(t.Context(), auth.AuditQuery{}, access, 100)
		require.NoError(t, err)
		for _, row := range page.Rows {
			require.Equal(t, row.Owner.User, row.Actor)
			out = append(out, row.Action+" "+row.Owner.User)
		}
		return out
	}
	person := func(id string) auth.Access { return func(o agent.Owner) bool { return o.User == id } }
	require.Equal(t, []string{"signed_in " + alice, "signed_out " + alice, "signin_refused " + bob}, read(signin.Operator().Access()))
	require.Equal(t, []string{"signed_in " + alice, "signed_out " + alice}, read(person(alice)))
	require.Empty(t, read(signin.Service{Name: "shop", Apps: []string{"planner"}}.Owns))
}
