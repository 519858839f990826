package demo_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/url"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// identity logs alice in as a client of OpenID Connect does and returns the answer of the token endpoint.
func (a *app) identity() answer {
	a.t.Helper()
	page, err := demo.NewBrowser().Login(a.t.Context(), a.authorizeURL(map[string]string{
		"scope": "openid email", "nonce": "n-1", "resource": "",
	}), "alice", "alice-password")
	require.NoError(a.t, err)
	return a.redeem(page.URL.Query().Get("code"), map[string]string{"resource": ""})
}

// A library that nobody here wrote takes the provider's ID tokens, and not those that its faults spoil.
func TestIDTokens(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true}})
	a := newApp(t, p, demo.AuthNone)
	ctx := oidc.ClientContext(t.Context(), a.http.HTTP())
	discovered, err := oidc.NewProvider(ctx, p.Issuer())
	require.NoError(t, err)
	verifier := discovered.Verifier(&oidc.Config{ClientID: a.id})
	got := a.identity()
	raw, _ := got.fields["id_token"].(string)
	token, err := verifier.Verify(ctx, raw)
	require.NoError(t, err)
	require.Equal(t, demo.Subject("alice"), token.Subject)
	require.Equal(t, "n-1", token.Nonce)
	var claims struct{ Email string }
	require.NoError(t, token.Claims(&claims))
	require.Equal(t, "alice@ledger.example", claims.Email)
	require.Contains(t, p.Secrets().All(), raw)
	require.NotEmpty(t, a.renew(got.refresh, map[string]string{"resource": ""}).fields["id_token"])

	for name, spoil := range map[string]func(*demo.Faults){
		"forged":   func(f *demo.Faults) { f.ForgedIDToken = true },
		"audience": func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"aud": "another"} },
		"no end":   func(f *demo.Faults) { f.IDTokenClaims = map[string]any{"exp": nil} },
		"none":     func(f *demo.Faults) { f.NoIDToken = true },
	} {
		p.SetFaults(func(f *demo.Faults) { *f = demo.Faults{OIDCMetadata: true}; spoil(f) })
		raw, _ := a.identity().fields["id_token"].(string)
		_, err = verifier.Verify(ctx, raw)
		require.Error(t, err, name)
	}
}

func TestClientsThatSign(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	p := newProvider(t, demo.ProviderConfig{Clients: []demo.Client{{
		ID: "signing", PublicKey: key.Public(), AuthMethod: demo.AuthPrivateKey, GrantTypes: []string{"client_credentials"},
	}}})
	a := newApp(t, p, demo.AuthNone)
	a.id = "signing"
	sign := func(change map[string]any) string {
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
		require.NoError(t, err)
		claims := map[string]any{"iss": "signing", "sub": "signing", "aud": p.Issuer(), "jti": rand.Text(), "exp": time.Now().Add(time.Minute).Unix()}
		for k, v := range change {
			claims[k] = v
		}
		raw, err := jwt.Signed(signer).Claims(claims).Serialize()
		require.NoError(t, err)
		return raw
	}
	ask := func(assertion string) answer {
		return a.token(url.Values{
			"grant_type": {"client_credentials"}, "client_assertion": {assertion},
			"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		}, nil)
	}
	good := sign(nil)
	require.NotEmpty(t, ask(good).access)
	require.Equal(t, "invalid_client", ask(good).err, "a replay")
	require.Contains(t, p.Secrets().All(), good)
	for name, change := range map[string]map[string]any{
		"audience": {"aud": p.TokenURL()}, "audiences": {"aud": []string{p.Issuer(), p.TokenURL()}}, "subject": {"sub": "other"}, "issuer": {"iss": "other"},
		"over": {"exp": time.Now().Add(-time.Second).Unix()}, "too long": {"exp": time.Now().Add(time.Hour).Unix()}, "no id": {"jti": ""},
	} {
		require.Equal(t, "invalid_client", ask(sign(change)).err, name)
	}
	require.Equal(t, "invalid_client", a.token(url.Values{"grant_type": {"client_credentials"}}, nil).err)
}
