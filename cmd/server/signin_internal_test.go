package main

import (
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/process"
	"tarry/server/signin"
)

func read(t *testing.T, addr, public string, vars map[string]string) (*signin.Config, signin.Peers, error) {
	t.Helper()
	u, err := url.Parse(public)
	require.NoError(t, err)
	e := process.Environment{Log: slog.New(slog.DiscardHandler), Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	return signInSettings(e, u, addr)
}

func TestSignInSettings(t *testing.T) {
	t.Parallel()
	const local, open, public = "127.0.0.1:8080", "0.0.0.0:8080", "https://tarry.example"
	dir := t.TempDir()
	file := func(name, body string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		return path
	}
	oidc := func(pairs ...string) map[string]string {
		out := map[string]string{"TARRY_SIGNIN": "oidc", "TARRY_OIDC_ISSUER": "https://login.example", "TARRY_OIDC_CLIENT_ID": "tarry", "TARRY_OIDC_CLIENT_SECRET": "s3cret", "TARRY_OIDC_ALLOW": "*"}
		for i := 1; i < len(pairs); i += 2 {
			out[pairs[i-1]] = pairs[i]
		}
		return out
	}
	jwt := map[string]string{"TARRY_SIGNIN": "jwt", "TARRY_JWT_ISSUERS": "https://login.example", "TARRY_JWT_AUDIENCE": "api"}
	for name, tc := range map[string]struct {
		addr, public string
		vars         map[string]string
		err          []string // empty: none
	}{
		"none":                      {local, "http://localhost:8080", nil, nil},
		"none, open":                {open, "http://localhost:8080", nil, []string{"TARRY_HTTP_ADDR", "TARRY_SIGNIN"}},
		"none, public":              {local, public, nil, []string{"TARRY_PUBLIC_URL", "TARRY_SIGNIN"}},
		"none beside another":       {local, public, oidc("TARRY_SIGNIN", "none,oidc"), []string{"TARRY_SIGNIN", "take it out"}},
		"unknown":                   {local, public, map[string]string{"TARRY_SIGNIN": "saml"}, []string{"TARRY_SIGNIN", `"saml"`, "none, oidc, jwt, proxy"}},
		"variable of another mode":  {local, "http://localhost", map[string]string{"TARRY_JWT_AUDIENCE": "api"}, []string{"TARRY_JWT_AUDIENCE", "add jwt to TARRY_SIGNIN"}},
		"oidc":                      {open, public, oidc(), nil},
		"oidc, http":                {open, "http://tarry.example", oidc(), []string{"TARRY_PUBLIC_URL", "https"}},
		"oidc, nothing else":        {open, public, map[string]string{"TARRY_SIGNIN": "oidc"}, []string{"TARRY_OIDC_ISSUER: is missing", "TARRY_OIDC_CLIENT_ID: is missing", "/signin/callback"}},
		"oidc, nobody allowed":      {open, public, oidc("TARRY_OIDC_ALLOW", "", "TARRY_OIDC_ISSUER", "https://accounts.google.com"), []string{"TARRY_OIDC_ALLOW: is missing", "anybody", "@example.com"}},
		"oidc, no rule":             {open, public, oidc("TARRY_OIDC_ALLOW", "@example.com,example.org"), []string{`TARRY_OIDC_ALLOW: "example.org" is no rule`}},
		"oidc, unchecked addresses": {open, public, oidc("TARRY_OIDC_ALLOW", "email=ann@example.com"), []string{"TARRY_OIDC_ALLOW", "nobody has checked"}},
		"oidc, a name as a rule":    {open, public, oidc("TARRY_OIDC_ALLOW", "preferred_username=ann"), []string{"TARRY_OIDC_ALLOW", "choose for themselves"}},
		"oidc, addresses unasked":   {open, public, oidc("TARRY_OIDC_ALLOW", "@example.com", "TARRY_OIDC_SCOPES", "openid"), []string{"TARRY_OIDC_SCOPES", "lacks email"}},
		"oidc, plain issuer":        {open, public, oidc("TARRY_OIDC_ISSUER", "http://login.example"), []string{"TARRY_OIDC_ISSUER", "https"}},
		"oidc, no openid":           {open, public, oidc("TARRY_OIDC_SCOPES", "email"), []string{"TARRY_OIDC_SCOPES", "openid"}},
		"oidc, no duration":         {open, public, oidc("TARRY_SESSION_IDLE", "8"), []string{"TARRY_SESSION_IDLE", `"8"`, "8h"}},
		"oidc, two secrets":         {open, public, oidc("TARRY_OIDC_CLIENT_SECRET_FILE", file("secret", "x\n")), []string{"TARRY_OIDC_CLIENT_SECRET", "unset one"}},
		"oidc, no such file":        {open, public, oidc("TARRY_OIDC_CLIENT_SECRET", "", "TARRY_OIDC_CLIENT_SECRET_FILE", dir+"/none"), []string{"TARRY_OIDC_CLIENT_SECRET_FILE", "cannot be read"}},
		"oidc, empty file":          {open, public, oidc("TARRY_OIDC_CLIENT_SECRET", "", "TARRY_OIDC_CLIENT_SECRET_FILE", file("empty", "\n")), []string{"is empty"}},
		"jwt":                       {open, public, jwt, nil},
		"jwt, nothing else":         {open, public, map[string]string{"TARRY_SIGNIN": "jwt"}, []string{"TARRY_JWT_ISSUERS: is missing", "TARRY_JWT_AUDIENCE: is missing"}},
		"ID tokens for the API":     {open, public, oidc("TARRY_SIGNIN", "oidc,jwt", "TARRY_JWT_ISSUERS", "https://login.example", "TARRY_JWT_AUDIENCE", "tarry"), []string{"TARRY_JWT_AUDIENCE", "ID tokens"}},
		"proxy":                     {open, public, map[string]string{"TARRY_SIGNIN": "proxy", "TARRY_TRUSTED_PROXIES": "10.0.0.5/32"}, nil},
		"proxy, nobody trusted":     {open, public, map[string]string{"TARRY_SIGNIN": "proxy"}, []string{"TARRY_TRUSTED_PROXIES: is missing"}},
		"proxy, everybody trusted":  {open, public, map[string]string{"TARRY_SIGNIN": "proxy", "TARRY_TRUSTED_PROXIES": "0.0.0.0/0"}, []string{"TARRY_TRUSTED_PROXIES", "anybody"}},
		"proxy, no range":           {open, public, map[string]string{"TARRY_SIGNIN": "proxy", "TARRY_TRUSTED_PROXIES": "10.0.0.5"}, []string{`"10.0.0.5"`, "10.0.0.5/32"}},
		"services, unknown key":     {open, public, with(jwt, "TARRY_SERVICES", file("typo", "services: [{name: a, isuer: x}]")), []string{"TARRY_SERVICES", "isuer"}},
		"services, unlisted issuer": {open, public, with(jwt, "TARRY_SERVICES", file("issuer", "services: [{name: a, issuer: https://x}]")), []string{"TARRY_SERVICES", "TARRY_JWT_ISSUERS"}},
		"services":                  {open, public, with(jwt, "TARRY_SERVICES", file("ok", "services: [{name: a, issuer: https://login.example, subject: s, apps: [x]}]")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := read(t, tc.addr, tc.public, tc.vars)
			if len(tc.err) == 0 {
				require.NoError(t, err)
				return
			}
			for _, text := range tc.err {
				require.ErrorContains(t, err, text)
			}
			require.NotContains(t, err.Error(), "s3cret")
		})
	}
	c, peers, err := read(t, open, public, oidc("TARRY_OIDC_CLIENT_SECRET", "", "TARRY_OIDC_CLIENT_SECRET_FILE", file("from", "from file\n"), "TARRY_TRUSTED_PROXIES", "10.0.0.0/8, fd00::/8"))
	require.NoError(t, err)
	require.Equal(t, "from file", c.OIDC.ClientSecret.Reveal())
	require.Equal(t, signin.Peers{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, peers)
	require.Nil(t, c.JWT)
	require.Nil(t, c.Proxy)
}

func with(vars map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range vars {
		out[k] = v
	}
	return out
}
