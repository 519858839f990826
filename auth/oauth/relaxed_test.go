package oauth_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
)

// Some providers reject what they do not know: omit_resource keeps the parameter out of every request, and the token
// still goes to no other server.
func TestOmittedResource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]func(*world) auth.Want{
		"discovered": (*world).mcpWant,
		"written":    (*world).explicitWant,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.noResource = true
			want := want(w)
			want.Auth.OmitResource = true
			n := w.needOf(want)
			require.Equal(t, "server:"+w.provider.mcp(), n.Slot.Resource)
			require.Equal(t, []string{"omit_resource"}, n.Relaxed)
			token := w.login(want)
			w.pass(2 * time.Hour)
			next, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			require.NotEqual(t, token.Access.Reveal(), next.Access.Reveal())
			for _, form := range w.provider.tokenRequests() {
				require.False(t, form.Has("resource"))
			}
			require.Contains(t, w.store.audits(), "opened omit_resource")
			require.Contains(t, w.logs.String(), `"relaxed":["omit_resource"]`)

			other := want
			other.Server, other.Auth.Resource = "https://evil.example/mcp", ""
			_, err = w.broker().Token(t.Context(), other)
			require.Error(t, err, "the token is tied to its server")
			other = want
			other.Auth.OmitResource = false
			_, err = w.broker().Token(t.Context(), other)
			require.Error(t, err, "what was asked for without resource does not pass for the other")
		})
	}
}

func TestMissingPKCE(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.metadata = map[string]any{"code_challenge_methods_supported": nil}
	want := w.mcpWant()
	err := w.broker().Challenged(t.Context(), want, unauthorized(0))
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.ErrorContains(t, err, "allow_missing_pkce: true")
	want.Auth.AllowMissingPKCE = true
	w.login(want) // the provider of these tests insists on S256
}

func TestLegacyServer(t *testing.T) {
	t.Parallel()
	for name, bare := range map[string]bool{"with metadata": false, "with guessed endpoints": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.provider.legacy, w.provider.noMetadata = true, bare
			want := w.mcpWant()
			require.ErrorContains(t, w.broker().Challenged(t.Context(), want, unauthorized(0)), "legacy_authorization")
			want.Auth.LegacyAuthorization = true
			n := w.needOf(want)
			require.Equal(t, !bare, n.Provider.Discovered)
			w.login(want)
			require.Len(t, w.provider.register, 1)
			w.pass(2 * time.Hour)
			_, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
		})
	}
}
