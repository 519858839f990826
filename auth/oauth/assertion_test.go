package oauth_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// assertion is a client assertion that the provider took.
type assertion struct {
	alg, kid, id string
	life         time.Duration
}

// asserted is RFC 7523 section 3 with the one audience of its successor. p is locked.
func (p *provider) asserted(form url.Values) (client string, ok bool) {
	if form.Get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" || form.Has("client_secret") {
		return "", false
	}
	jws, err := jose.ParseSigned(form.Get("client_assertion"), []jose.SignatureAlgorithm{
		jose.RS256, jose.PS256, jose.RS384, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
	})
	if err != nil {
		return "", false
	}
	key, known := p.keys[form.Get("client_id")]
	if !known {
		return "", false
	}
	raw, err := jws.Verify(key)
	if err != nil {
		return "", false
	}
	var claims struct {
		Iss, Sub, Aud, Jti string
		Exp, Iat           int64
	}
	if json.Unmarshal(raw, &claims) != nil {
		return "", false
	}
	want := p.URL
	if p.audience != "" {
		want = p.audience
	}
	h := jws.Signatures[0].Header
	a := assertion{alg: h.Algorithm, kid: h.KeyID, id: claims.Jti, life: time.Duration(claims.Exp-claims.Iat) * time.Second}
	for _, before := range p.assertions {
		if before.id == a.id {
			return "", false // a replay
		}
	}
	if claims.Aud != want || claims.Iss != form.Get("client_id") || claims.Sub != claims.Iss || len(a.id) < 22 || a.life <= 0 || a.life > 5*time.Minute {
		return "", false
	}
	p.assertions = append(p.assertions, a)
	return claims.Sub, true
}

func pemOf(t *testing.T, kind string, der []byte, err error) string {
	t.Helper()
	require.NoError(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pemOf(t, "PRIVATE KEY", der, err)
}

func rsaKey(t *testing.T, bits int) *rsa.PrivateKey {
	t.Helper()
	if bits < 1024 {
		t.Setenv("GODEBUG", "rsa1024min=0")
	}
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	return key
}

func ecKey(t *testing.T, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	return key
}

// signing is a world whose client proves itself with a key; text is the key as the operator keeps it.
func signing(t *testing.T, text string, public any) *world {
	t.Helper()
	w := newWorld(t)
	w.provider.keys = map[string]any{"client": public}
	w.provider.clients["client"] = "nobody sends a secret"
	w.service = w.newService(func(cfg *oauth.Config) {
		cfg.Secrets = func(_ context.Context, s agent.Source) (auth.Secret, error) {
			if s.Name == "client.pem" {
				return auth.NewSecret(text), nil
			}
			return auth.Secret{}, errors.New("not set")
		}
	})
	return w
}

func signs(want auth.Want) auth.Want {
	want.Auth.ClientSecret, want.Auth.ClientAuth = "", agent.ClientAuthPrivateKey
	want.Auth.PrivateKey = "${file:client.pem}"
	return want
}

func (w *world) named() auth.Want {
	want := signs(w.explicitWant())
	want.Auth.Issuer = w.provider.URL
	return want
}

func TestPrivateKeys(t *testing.T) {
	t.Parallel()
	long, p256, p384, p521 := rsaKey(t, 2048), ecKey(t, elliptic.P256()), ecKey(t, elliptic.P384()), ecKey(t, elliptic.P521())
	public, ed, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	jwk := func(key any, kid, alg string) string {
		raw, err := json.Marshal(jose.JSONWebKey{Key: key, KeyID: kid, Algorithm: alg})
		require.NoError(t, err)
		return string(raw)
	}
	sec1, err := x509.MarshalECPrivateKey(p256)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		text      string
		public    any
		supported []string
		alg, kid  string
	}{
		"RSA":                  {text: pkcs8(t, long), public: long.Public(), alg: "RS256", kid: "from-definition"},
		"RSA of old":           {text: pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(long), nil), public: long.Public(), alg: "RS256", kid: "from-definition"},
		"RSA where PS is said": {text: pkcs8(t, long), public: long.Public(), supported: []string{"ES256", "PS256"}, alg: "PS256", kid: "from-definition"},
		"RSA JWK with alg":     {text: jwk(long, "own", "PS256"), public: long.Public(), supported: []string{"RS256"}, alg: "PS256", kid: "own"},
		"EC":                   {text: pkcs8(t, p256), public: p256.Public(), alg: "ES256", kid: "from-definition"},
		"EC of openssl":        {text: "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n" + pemOf(t, "EC PRIVATE KEY", sec1, nil), public: p256.Public(), alg: "ES256", kid: "from-definition"},
		"EC 384":               {text: pkcs8(t, p384), public: p384.Public(), alg: "ES384", kid: "from-definition"},
		"EC 521":               {text: jwk(p521, "", ""), public: p521.Public(), alg: "ES512", kid: "from-definition"},
		"Ed25519":              {text: pkcs8(t, ed), public: public, alg: "EdDSA", kid: "from-definition"},
		"Ed25519 JWK":          {text: "\n" + jwk(ed, "k1", "") + "\n", public: public, alg: "EdDSA", kid: "k1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := signing(t, tc.text, tc.public)
			w.provider.metadata = map[string]any{"token_endpoint_auth_signing_alg_values_supported": tc.supported}
			want := signs(w.appMCPWant())
			want.Auth.PrivateKeyID = "from-definition"
			_, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			taken := w.provider.assertions[0]
			require.Equal(t, tc.alg, taken.alg)
			require.Equal(t, tc.kid, taken.kid)
		})
	}
}

// Every request that proves the client does so, each with an assertion of its own.
func TestPrivateKeyEverywhere(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	w := signing(t, pkcs8(t, key), key.Public())
	for name, want := range map[string]auth.Want{
		"login": w.named(), "client credentials": signs(w.appMCPWant()),
		"login, all discovered": {Server: w.provider.mcp(), Tool: "tool", Auth: agent.Auth{
			Type: agent.AuthMCP, Domain: "other", Issuer: w.provider.URL, ClientID: "client", ClientAuth: agent.ClientAuthPrivateKey, PrivateKey: "${file:client.pem}",
		}},
	} {
		before := len(w.provider.assertions)
		if want.Auth.Grant == agent.GrantClientCredentials {
			_, err := w.broker().Token(t.Context(), want)
			require.NoError(t, err, name)
		} else {
			w.login(want)
		}
		w.pass(time.Hour - 30*time.Second)
		_, err := w.broker().Token(t.Context(), want)
		require.NoError(t, err, name)
		require.Len(t, w.provider.assertions, before+2, "%s: the token and what came in its place", name)
	}
	for _, form := range w.provider.tokenRequests() {
		require.NotContains(t, form, "client_secret")
	}
	for _, header := range w.provider.auths {
		require.Empty(t, header)
	}
}

func TestAssertionAudience(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	for name, tc := range map[string]struct {
		want     func(*world) auth.Want
		audience func(*world) string
	}{
		"issuer":                      {(*world).named, func(w *world) string { return w.provider.URL }},
		"endpoint where nothing else": {func(w *world) auth.Want { return signs(w.explicitWant()) }, func(w *world) string { return w.provider.URL + "/token" }},
		"endpoint by definition": {func(w *world) auth.Want {
			want := w.named()
			want.Auth.AssertionAudience = agent.AudienceTokenEndpoint
			return want
		}, func(w *world) string { return w.provider.URL + "/token" }},
		"endpoint by definition, discovered": {func(w *world) auth.Want {
			want := signs(w.appMCPWant())
			want.Auth.AssertionAudience = agent.AudienceTokenEndpoint
			return want
		}, func(w *world) string { return w.provider.URL + "/token" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := signing(t, pkcs8(t, key), key.Public())
			w.provider.audience = tc.audience(w)
			want := tc.want(w)
			if want.Auth.Grant == "" {
				w.login(want)
			} else {
				_, err := w.broker().Token(t.Context(), want)
				require.NoError(t, err)
			}
			require.NotEmpty(t, w.provider.assertions)
		})
	}
}

// What is wrong with a key is said without it.
func TestBadPrivateKeys(t *testing.T) {
	t.Parallel()
	good := ecKey(t, elliptic.P256())
	publicDER, err := x509.MarshalPKIXPublicKey(good.Public())
	require.NoError(t, err)
	private := pkcs8(t, good)
	for name, tc := range map[string]struct {
		text, says string
		supported  []string
	}{
		"nothing":      {text: " ", says: "is neither PEM (PKCS #8, PKCS #1, SEC 1) nor a JWK"},
		"words":        {text: "canary-0123456789", says: "is neither PEM"},
		"broken JWK":   {text: `{"kty":"EC","canary-0123456789":1}`, says: "nor a JWK"},
		"symmetric":    {text: `{"kty":"oct","k":"` + base64.RawURLEncoding.EncodeToString([]byte("canary-0123456789")) + `"}`, says: "is neither RSA, EC"},
		"public":       {text: pemOf(t, "PUBLIC KEY", publicDER, nil), says: "is a public key"},
		"encrypted":    {text: pemOf(t, "ENCRYPTED PRIVATE KEY", []byte("canary-0123456789"), nil), says: "is encrypted"},
		"two":          {text: private + private, says: "more than one PEM block"},
		"damaged":      {text: pemOf(t, "PRIVATE KEY", []byte("canary-0123456789"), nil), says: "is neither PEM"},
		"short":        {text: pemOf(t, "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey(t, 1024)), nil), says: "less than 2048 bits"},
		"wrong alg":    {text: jwkWith(t, good, "RS256"), says: "names an alg that it is not for"},
		"no HMAC":      {text: jwkWith(t, good, "HS256"), says: "names an alg that it is not for"},
		"not taken":    {text: private, supported: []string{"RS256", "PS256"}, says: "is of a kind that the provider does not take; it takes RS256 PS256"},
		"other's key":  {text: pkcs8(t, ecKey(t, elliptic.P256())), says: "takes nothing that its private key signs"},
		"unresolvable": {text: "", says: "private key file:client.pem is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := signing(t, tc.text, good.Public())
			w.provider.metadata = map[string]any{"token_endpoint_auth_signing_alg_values_supported": tc.supported}
			_, err := w.broker().Token(t.Context(), signs(w.appMCPWant()))
			require.ErrorIs(t, err, auth.ErrMisconfigured)
			require.ErrorContains(t, err, tc.says)
			for _, text := range []string{err.Error(), w.logs.String()} {
				require.NotContains(t, text, "canary-0123456789")
				if key := strings.TrimSpace(tc.text); key != "" {
					require.NotContains(t, text, key)
				}
			}
		})
	}
}

func jwkWith(t *testing.T, key crypto.PrivateKey, alg string) string {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKey{Key: key, Algorithm: alg})
	require.NoError(t, err)
	return string(raw)
}

// A login at a provider that does not take the key says so to the operator, and stays open.
func TestPrivateKeyAtLogin(t *testing.T) {
	t.Parallel()
	key := ecKey(t, elliptic.P256())
	w := signing(t, pkcs8(t, key), ecKey(t, elliptic.P256()).Public())
	w.ask("r", w.needOf(w.named()))
	_, err := w.service.Complete(t.Context(), only(ann), w.callback("r"))
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.ErrorContains(t, err, "takes nothing that its private key signs")
	require.NotContains(t, w.logs.String(), pkcs8(t, key))
}
