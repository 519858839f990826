package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/discovery"
)

func TestRules(t *testing.T) {
	t.Parallel()
	silent := strings.Replace(goodAS, `"code_challenge_methods_supported":["plain","S256"],`, ``, 1)
	plain := strings.Replace(goodAS, `,"S256"`, ``, 1)
	for name, tc := range map[string]struct {
		docs      map[string]string
		codes     map[string]int
		challenge string
		rules     discovery.Rules
		token     string // the token endpoint that is found, else an error
		says      string
		err       error
		requests  []string
	}{
		"PKCE is not announced":                {docs: map[string]string{prm + "/mcp": pathPRM, asm: silent}, says: "write allow_missing_pkce: true under tarry"},
		"PKCE is not announced in OpenID":      {docs: map[string]string{prm + "/mcp": pathPRM, oidc: silent}, says: "write allow_missing_pkce: true under tarry"},
		"PKCE is not announced, and allowed":   {docs: map[string]string{prm + "/mcp": pathPRM, asm: silent}, rules: discovery.Rules{AllowMissingPKCE: true}, token: "{}/token"},
		"S256 is not offered, though allowed":  {docs: map[string]string{prm + "/mcp": pathPRM, asm: plain}, rules: discovery.Rules{AllowMissingPKCE: true}, says: "does not offer PKCE with S256"},
		"an empty list is no announcement":     {docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `"plain","S256"`, ``, 1)}, says: "allow_missing_pkce"},
		"other issuer than the client's":       {docs: map[string]string{prm + "/mcp": pathPRM}, rules: discovery.Rules{Issuer: "https://old.example"}, says: "{host} is protected by {host}, and the definition's client belongs to old.example", requests: []string{prm + "/mcp"}},
		"old server, not told so":              {docs: map[string]string{asm: goodAS}, says: "legacy_authorization: true under tarry", requests: []string{prm + "/mcp", prm}},
		"old server with metadata":             {docs: map[string]string{asm: strings.ReplaceAll(silent, "{}/token", "{}/t")}, rules: discovery.Rules{Legacy: true}, token: "{}/t", requests: []string{prm + "/mcp", prm, asm}},
		"old server without metadata":          {rules: discovery.Rules{Legacy: true}, token: "{}/token", requests: []string{prm + "/mcp", prm, asm, oidc}},
		"old server whose metadata is foreign": {docs: map[string]string{asm: strings.Replace(goodAS, `"issuer":"{}"`, `"issuer":"https://other.example"`, 1)}, rules: discovery.Rules{Legacy: true}, says: "names another issuer"},
		"old server whose metadata is down":    {codes: map[string]int{asm: 500}, rules: discovery.Rules{Legacy: true}, err: auth.ErrUnavailable},
		"old server with another issuer":       {rules: discovery.Rules{Legacy: true, Issuer: "https://old.example"}, says: "belongs to old.example", requests: []string{prm + "/mcp", prm}},
		"old rules, new server":                {docs: map[string]string{prm + "/mcp": pathPRM, asm: silent}, rules: discovery.Rules{Legacy: true}, says: "allow_missing_pkce"},
		"old rules, document of another":       {docs: map[string]string{prm + "/mcp": `{"resource":"{}/other","authorization_servers":["{}"]}`}, rules: discovery.Rules{Legacy: true}, says: "is about another resource", requests: []string{prm + "/mcp"}},
		"old rules, document that is missing":  {challenge: `Bearer resource_metadata="{}/prm.json"`, rules: discovery.Rules{Legacy: true}, says: "no protected resource metadata", requests: []string{"/prm.json"}},
		"old rules, document that is down":     {codes: map[string]int{prm: 503}, rules: discovery.Rules{Legacy: true}, err: auth.ErrUnavailable, requests: []string{prm + "/mcp", prm}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			if tc.docs != nil {
				s.docs = tc.docs
			}
			s.codes = tc.codes
			full := func(v string) string { return strings.ReplaceAll(v, "{}", s.URL) }
			var headers []string
			if tc.challenge != "" {
				headers = []string{full(tc.challenge)}
			}
			found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", headers, tc.rules)
			if tc.requests != nil {
				require.Equal(t, tc.requests, s.requests())
			}
			switch {
			case tc.err != nil:
				require.ErrorIs(t, err, tc.err)
			case tc.says != "":
				require.ErrorIs(t, err, auth.ErrMisconfigured)
				require.ErrorContains(t, err, strings.ReplaceAll(tc.says, "{host}", strings.TrimPrefix(s.URL, "http://")))
			default:
				require.NoError(t, err)
				require.Equal(t, full(tc.token), found.Provider.TokenEndpoint)
				require.Equal(t, s.URL, found.Provider.Issuer)
				require.Equal(t, s.URL+"/mcp", found.Resource)
			}
		})
	}
}

// Endpoints that are guessed belong to no issuer that could be compared with iss.
func TestGuessedEndpoints(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp/", []string{`Bearer scope="a b"`}, discovery.Rules{Legacy: true})
	require.NoError(t, err)
	require.Equal(t, auth.Provider{
		Issuer: s.URL, AuthorizationEndpoint: s.URL + "/authorize", TokenEndpoint: s.URL + "/token", RegistrationEndpoint: s.URL + "/register",
	}, found.Provider)
	require.Equal(t, []string{"a", "b"}, found.Scopes)
	require.True(t, found.Challenged)
	d := &discovery.Discoverer{HTTP: s.Client()}
	_, err = d.Server(t.Context(), "http://mcp.example/mcp", nil, discovery.Rules{Legacy: true})
	require.ErrorIs(t, err, auth.ErrMisconfigured)
}
