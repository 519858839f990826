package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/internal/demo"
	"tarry/server/signin"
)

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

func TestBearerTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	other, err := demo.NewProvider(demo.ProviderConfig{Faults: demo.Faults{OIDCMetadata: true}})
	require.NoError(t, err)
	require.NoError(t, other.Start(""))
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	good := map[string]any{"sub": "batch", "aud": audience, "jti": demo.DefaultMark}
	with := func(pairs ...any) map[string]any {
		out := map[string]any{}
		for k, v := range good {
			out[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			out[pairs[i].(string)] = pairs[i+1]
		}
		return out
	}
	sign := func(typ string, claims map[string]any) string {
		token, err := w.provider.Sign(typ, claims)
		require.NoError(t, err)
		return token
	}
	genuine := sign("at+jwt", good)
	parts := strings.Split(genuine, ".")
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	ofOther, err := other.Sign("at+jwt", with("iss", w.provider.Issuer()))
	require.NoError(t, err)
	ofStranger, err := other.Sign("at+jwt", good)
	require.NoError(t, err)
	for name, tc := range map[string]struct {
		token string
		ok    bool
		log   string
	}{
		"access token":              {genuine, true, ""},
		"plain JWT":                 {sign("JWT", good), true, ""},
		"full media type":           {sign("application/at+jwt", good), true, ""},
		"one of two audiences":      {sign("at+jwt", with("aud", []string{"x", audience})), true, ""},
		"wrong audience":            {sign("at+jwt", with("aud", "another")), false, "audience"},
		"audience of the client":    {sign("JWT", with("aud", clientID, "nonce", "n")), false, "audience"},
		"no audience":               {sign("at+jwt", with("aud", nil)), false, "audience"},
		"wrong issuer":              {sign("at+jwt", with("iss", "https://evil.example")), false, "issuer"},
		"no issuer":                 {sign("at+jwt", with("iss", nil)), false, "issuer"},
		"issuer that is not listed": {ofStranger, false, "issuer"},
		"key of another issuer":     {ofOther, false, "signature"},
		"expired":                   {sign("at+jwt", with("exp", time.Now().Add(-time.Minute).Unix())), false, "expired"},
		"no expiry":                 {sign("at+jwt", with("exp", nil)), false, "expired"},
		"not yet":                   {sign("at+jwt", with("nbf", time.Now().Add(time.Hour).Unix())), false, "nbf"},
		"no subject":                {sign("at+jwt", with("sub", nil)), false, "claims"},
		"logout token":              {sign("logout+jwt", good), false, "typ"},
		"alg none":                  {encode(`{"alg":"none","typ":"at+jwt"}`) + "." + parts[1] + ".", false, "not valid"},
		"HS256":                     {hmacToken(t, w.provider.Issuer()), false, "not valid"},
		"unknown kid":               {foreignKey(t, w.provider.Issuer()), false, "signature"},
		"edited":                    {parts[0] + "." + encode(`{"iss":"`+w.provider.Issuer()+`","sub":"root","aud":"`+audience+`","exp":9999999999}`) + "." + parts[2], false, "signature"},
		"no token":                  {"", false, "no bearer token"},
		"no JWT":                    {demo.DefaultMark, false, "malformed"},
		"huge":                      {strings.Repeat("a", 20<<10), false, "malformed"},
	} {
		before := len(w.logs.String())
		res := w.call(http.MethodGet, "/api", bearer(tc.token))
		logged := w.logs.String()[before:]
		if tc.ok {
			require.Equal(t, http.StatusOK, res.status, "%s: %s", name, res.body)
			require.Equal(t, signin.UserID(w.provider.Issuer(), "batch"), res.json["user"], name)
			require.Equal(t, signin.ModeJWT, res.json["mode"], name)
			continue
		}
		require.Equal(t, http.StatusUnauthorized, res.status, "%s: %s", name, res.body)
		require.Equal(t, `Bearer realm="tarry", error="invalid_token"`, res.header.Get("WWW-Authenticate"), name)
		require.Contains(t, logged, tc.log, name)
		require.NotContains(t, logged+res.body, demo.DefaultMark, name)
	}
	// A token that is refused is not made good by a cookie, and a good one needs none of what protects cookies.
	b := demo.NewBrowser()
	w.signIn(b, link, "alice")
	mixed := bearer(sign("at+jwt", with("aud", "another")))
	mixed.Set("Cookie", "tarry-session="+w.session(b))
	require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", mixed).status)
	require.Equal(t, http.StatusOK, w.call(http.MethodPost, "/api", bearer(genuine)).status)
	// The person and their program are one user where the provider says so.
	alice := w.call(http.MethodGet, "/api", bearer(sign("at+jwt", with("sub", demo.Subject("alice")))))
	require.Equal(t, signin.UserID(w.provider.Issuer(), demo.Subject("alice")), alice.json["user"])
}

func hmacToken(t *testing.T, issuer string) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("k", 32))}, (&jose.SignerOptions{}).WithHeader("kid", "demo-1"))
	require.NoError(t, err)
	return serialize(t, signer, issuer)
}

func foreignKey(t *testing.T, issuer string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "mine"))
	require.NoError(t, err)
	return serialize(t, signer, issuer)
}

func serialize(t *testing.T, signer jose.Signer, issuer string) string {
	t.Helper()
	token, err := jwt.Signed(signer).Claims(map[string]any{"iss": issuer, "sub": "batch", "aud": audience, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
	require.NoError(t, err)
	return token
}

// Made-up key ids do not make us ask the issuer over and over.
func TestKeysAreAskedForSeldom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for range 50 {
		require.Equal(t, http.StatusUnauthorized, w.call(http.MethodGet, "/api", bearer(foreignKey(t, w.provider.Issuer()))).status)
	}
	fetched := 0
	for _, r := range w.provider.Requests() {
		if r.Path == "/jwks" {
			fetched++
		}
	}
	require.LessOrEqual(t, fetched, 15)
	require.Positive(t, fetched)
}

func TestIssuerThatIsDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	token, err := w.provider.Sign("at+jwt", map[string]any{"sub": "batch", "aud": audience})
	require.NoError(t, err)
	require.NoError(t, w.provider.Close())
	require.Equal(t, http.StatusServiceUnavailable, w.call(http.MethodGet, "/api", bearer(token)).status)
	require.Equal(t, http.StatusServiceUnavailable, w.open(demo.NewBrowser(), link).Status)
	require.NoError(t, w.provider.Start(""))
	require.Equal(t, http.StatusOK, w.call(http.MethodGet, "/api", bearer(token)).status)
}

func TestServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *signin.Config) {
		issuer := c.OIDC.Issuer
		c.Services = []signin.Service{
			{Name: "shop", Issuer: issuer, ClientID: "shop-backend", Apps: []string{"planner"}},
			{Name: "sho", Issuer: issuer, Subject: "service-account-7", Apps: []string{"planner", "other"}},
		}
	})
	for name, tc := range map[string]struct {
		claims  map[string]any
		service string
	}{
		"client credentials":      {map[string]any{"sub": "shop-backend", "client_id": "shop-backend"}, "shop"},
		"a person's, same client": {map[string]any{"sub": "alice", "client_id": "shop-backend"}, ""},
		"subject without client":  {map[string]any{"sub": "shop-backend"}, ""},
		"by subject":              {map[string]any{"sub": "service-account-7", "client_id": "x"}, "sho"},
	} {
		tc.claims["aud"] = audience
		token, err := w.provider.Sign("at+jwt", tc.claims)
		require.NoError(t, err)
		res := w.call(http.MethodGet, "/api", bearer(token))
		require.Equal(t, http.StatusOK, res.status)
		require.Equal(t, tc.service, res.json["service"], name)
		require.Equal(t, tc.service == "", res.json["user"] != "", name)
	}
	shop := signin.Service{Name: "shop", Apps: []string{"planner"}}
	for user, ok := range map[string]bool{
		"shop:4711": true, "shop:": false, "shop": false, "sho:4711": false, "shops:1": false, "u-x": false, signin.UserID("https://a", "ann"): false, "me": false, "user": false, "": false,
	} {
		require.Equal(t, ok, shop.Owns(agent.Owner{App: "planner", User: user}), user)
		require.False(t, shop.Owns(agent.Owner{App: "other", User: user}), user)
	}
}

func TestServicesThatCannotBe(t *testing.T) {
	t.Parallel()
	ok := signin.Service{Name: "shop", Issuer: "https://i", Subject: "s", Apps: []string{"a"}}
	for field, change := range map[string]func(*signin.Service){
		"name": func(s *signin.Service) { s.Name = "Shop:x" }, "name: is reserved": func(s *signin.Service) { s.Name = "u-x" },
		"issuer": func(s *signin.Service) { s.Issuer = "" }, "subject": func(s *signin.Service) { s.ClientID = "c" }, "apps": func(s *signin.Service) { s.Apps = nil },
		"return_url":            func(s *signin.Service) { s.ReturnURL = "http://shop.example/back" },
		"return_url: must be":   func(s *signin.Service) { s.ReturnURL = "javascript:alert(1)" },
		"return_url: must be a": func(s *signin.Service) { s.ReturnURL = "https://shop.example/back?x=1" },
	} {
		bad := ok
		change(&bad)
		_, err := signin.New(signin.Config{PublicURL: parse(t, "https://tarry.example"), Log: discard(), JWT: &signin.JWT{}, Services: []signin.Service{ok, bad}})
		require.ErrorContains(t, err, field)
	}
	_, err := signin.New(signin.Config{PublicURL: parse(t, "https://tarry.example"), Log: discard(), JWT: &signin.JWT{}, Services: []signin.Service{ok, ok}})
	require.ErrorContains(t, err, "stands twice")
}
