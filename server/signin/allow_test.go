package signin_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/server/signin"
)

// An issuer may know anybody: who of its people comes in is for the operator to say.
func TestWhoMaySignIn(t *testing.T) {
	t.Parallel()
	const mail = "ann@example.com"
	type claims map[string]any
	for name, tc := range map[string]struct {
		rules  []string
		claims claims
		ok     bool
	}{
		"everybody":                 {[]string{"*"}, nil, true},
		"an address":                {[]string{mail}, claims{"email": mail}, true},
		"in capitals":               {[]string{"Ann@Example.com"}, claims{"email": "ANN@EXAMPLE.COM"}, true},
		"a domain":                  {[]string{"@example.com"}, claims{"email": mail}, true},
		"one of several":            {[]string{"@example.org", "groups=tarry"}, claims{"groups": []string{"all", "tarry"}}, true},
		"a text":                    {[]string{"hd=example.com"}, claims{"hd": "example.com"}, true},
		"a truth":                   {[]string{"employee=true"}, claims{"employee": true}, true},
		"checked, as a text":        {[]string{mail}, claims{"email": mail, "email_verified": "true"}, true},
		"another address":           {[]string{mail}, claims{"email": "bob@example.com"}, false},
		"another domain":            {[]string{"@example.com"}, claims{"email": "ann@example.org"}, false},
		"a domain below":            {[]string{"@example.com"}, claims{"email": "ann@evil.example.com"}, false},
		"a longer domain":           {[]string{"@example.com"}, claims{"email": "ann@notexample.com"}, false},
		"a domain that goes on":     {[]string{"@example.com"}, claims{"email": "ann@example.com.evil.example"}, false},
		"two at signs":              {[]string{"@example.com"}, claims{"email": `"ann@evil.example"@example.com`}, false},
		"two at signs, the other":   {[]string{"@example.com"}, claims{"email": "ann@example.com@evil.example"}, false},
		"no local part":             {[]string{"@example.com"}, claims{"email": "@example.com"}, false},
		"a look-alike":              {[]string{"@kelvin.example"}, claims{"email": "ann@\u212aelvin.example"}, false},
		"a zero-width space":        {[]string{"@example.com"}, claims{"email": "ann@example.com\u200b"}, false},
		"unchecked":                 {[]string{mail, "@example.com"}, claims{"email": mail, "email_verified": false}, false},
		"unchecked, as a text":      {[]string{mail}, claims{"email": mail, "email_verified": "false"}, false},
		"nothing about checks":      {[]string{mail}, claims{"email": mail, "email_verified": nil}, false},
		"addresses in a list":       {[]string{mail}, claims{"email": []string{mail}}, false},
		"no such claim":             {[]string{"groups=tarry"}, nil, false},
		"part of a value":           {[]string{"groups=tarry"}, claims{"groups": "tarry2"}, false},
		"a value with more":         {[]string{"groups=tarry"}, claims{"groups": "all tarry"}, false},
		"a claim in a claim":        {[]string{"groups=tarry"}, claims{"groups": map[string]any{"tarry": true}}, false},
		"the name of the rule's at": {[]string{"hd=example.com"}, claims{"email": mail}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *signin.Config) {
				c.OIDC.Allow, c.OIDC.Scopes = allow(t, tc.rules...), []string{"openid", "email"}
				c.JWT.Allow = c.OIDC.Allow
			})
			w.provider.SetFaults(func(f *demo.Faults) { f.IDTokenClaims = tc.claims })
			b := demo.NewBrowser()
			page := w.signIn(b, link, "alice")
			program := map[string]any{"sub": "alice", "aud": audience, "email_verified": true}
			for k, v := range tc.claims {
				program[k] = v
			}
			token, err := w.provider.Sign("at+jwt", program)
			require.NoError(t, err)
			res := w.call(http.MethodGet, "/api", bearer(token))
			if tc.ok {
				require.Equal(t, http.StatusOK, page.Status, page.Text)
				require.NotEmpty(t, w.session(b))
				require.Equal(t, http.StatusOK, res.status, res.body)
				return
			}
			require.Equal(t, http.StatusForbidden, page.Status, page.Text)
			if _, text := tc.claims["email"].(string); text {
				require.Contains(t, page.Text, "may not use this server")
			}
			require.NotContains(t, page.Body, "example.com", "the page says nothing of rules or claims")
			require.Empty(t, w.session(b))
			require.Zero(t, w.reached.Load())
			require.Equal(t, http.StatusForbidden, res.status, res.body)
		})
	}
}

func TestRulesThatCannotBe(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		"", "example.com", "@", "@example", "ann@", "ann@example.com@evil.example", "@ex\u00e4mple.com", "email=ann@example.com", "email_verified=true", "=x", "groups=",
		"name=Ann", "preferred_username=ann", "upn=ann@example.com", "**", "*@example.com",
	} {
		_, err := signin.ParseAllow([]string{rule})
		require.Error(t, err, rule)
	}
	_, err := signin.New(signin.Config{})
	require.Error(t, err)
}

// Services are named by the operator one by one.
func TestServicesNeedNoRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *signin.Config) {
		c.JWT.Allow = allow(t, "groups=tarry")
		c.Services = []signin.Service{{Name: "shop", Issuer: c.JWT.Issuers[0], Subject: "shop-backend", Apps: []string{"planner"}}}
	})
	for sub, want := range map[string]int{"shop-backend": http.StatusOK, "somebody": http.StatusForbidden} {
		token, err := w.provider.Sign("at+jwt", map[string]any{"sub": sub, "aud": audience})
		require.NoError(t, err)
		require.Equal(t, want, w.call(http.MethodGet, "/api", bearer(token)).status, sub)
	}
}
