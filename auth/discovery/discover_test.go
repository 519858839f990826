package discovery_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"tarry/auth"
	"tarry/auth/discovery"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a host whose documents are set by path; {} in them is its URL.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	docs  map[string]string
	codes map[string]int
	log   []string
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{docs: map[string]string{}, codes: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.log = append(s.log, r.URL.RequestURI())
		doc, ok := s.docs[r.URL.Path]
		switch {
		case s.codes[r.URL.Path] != 0:
			w.WriteHeader(s.codes[r.URL.Path])
		case !ok:
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(strings.ReplaceAll(doc, "{}", s.URL)))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *site) discoverer() *discovery.Discoverer {
	return &discovery.Discoverer{HTTP: s.Client(), AllowLoopback: true}
}

func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

const (
	prm      = "/.well-known/oauth-protected-resource"
	asm      = "/.well-known/oauth-authorization-server"
	oidc     = "/.well-known/openid-configuration"
	goodAS   = `{"issuer":"{}","authorization_endpoint":"{}/authorize","token_endpoint":"{}/token","registration_endpoint":null,"code_challenge_methods_supported":["plain","S256"],"authorization_response_iss_parameter_supported":true,"scopes_supported":["r","offline_access"]}`
	pathPRM  = `{"resource":"{}/mcp","authorization_servers":["{}"],"scopes_supported":["r","w"]}`
	withPath = `{"issuer":"{}/realm","authorization_endpoint":"{}/authorize","token_endpoint":"{}/token","code_challenge_methods_supported":["S256"]}`
)

func TestServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		docs      map[string]string
		codes     map[string]int
		challenge string
		issuer    string
		resource  string // expected, else an error
		scopes    []string
		err       error
		requests  []string
	}{
		"document at the path": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: goodAS}, resource: "{}/mcp", scopes: []string{"r", "w"},
			requests: []string{prm + "/mcp", asm},
		},
		"document at the root about the origin": {
			docs: map[string]string{prm: `{"resource":"{}","authorization_servers":["{}"]}`, asm: goodAS}, resource: "{}",
			requests: []string{prm + "/mcp", prm, asm},
		},
		"slash at the end is kept": {
			docs: map[string]string{prm: `{"resource":"{}/","authorization_servers":["{}/"]}`, asm: goodAS}, resource: "{}/",
		},
		"document that the challenge names": {
			docs:      map[string]string{"/custom/prm.json": pathPRM, asm: goodAS},
			challenge: `Bearer resource_metadata="{}/custom/prm.json", scope="only"`, resource: "{}/mcp", scopes: []string{"only"},
			requests: []string{"/custom/prm.json", asm},
		},
		"path document about another path": {
			docs: map[string]string{prm + "/mcp": `{"resource":"{}/other","authorization_servers":["{}"]}`, asm: goodAS},
			err:  auth.ErrMisconfigured, requests: []string{prm + "/mcp"},
		},
		"path document about the origin": {
			docs: map[string]string{prm + "/mcp": `{"resource":"{}","authorization_servers":["{}"]}`, asm: goodAS},
			err:  auth.ErrMisconfigured, requests: []string{prm + "/mcp"},
		},
		"document about another origin": {
			docs: map[string]string{prm: `{"resource":"https://victim.example","authorization_servers":["{}"]}`, asm: goodAS},
			err:  auth.ErrMisconfigured, requests: []string{prm + "/mcp", prm},
		},
		"challenge that names another origin": {
			challenge: `Bearer resource_metadata="https://evil.example/prm"`, err: auth.ErrMisconfigured, requests: nil,
		},
		"no document, no guessing": {err: auth.ErrMisconfigured, requests: []string{prm + "/mcp", prm}},
		"no authorization server":  {docs: map[string]string{prm + "/mcp": `{"resource":"{}/mcp"}`}, err: auth.ErrMisconfigured},
		"page for everything": {
			docs: map[string]string{prm + "/mcp": "<html>", prm: `{"resource":"{}","authorization_servers":["{}"]}`, asm: "<html>", oidc: goodAS}, resource: "{}",
		},
		"server error is no answer": {
			docs: map[string]string{prm: `{"resource":"{}","authorization_servers":["{}"]}`}, codes: map[string]int{prm + "/mcp": 502},
			err: auth.ErrUnavailable, requests: []string{prm + "/mcp"},
		},
		"authorization server down": {
			docs: map[string]string{prm + "/mcp": pathPRM, oidc: goodAS}, codes: map[string]int{asm: 503}, err: auth.ErrUnavailable,
		},
		"busy": {codes: map[string]int{prm + "/mcp": 429}, err: auth.ErrUnavailable},
		"path issuer, third place": {
			docs:     map[string]string{prm + "/mcp": `{"resource":"{}/mcp","authorization_servers":["{}/realm"]}`, "/realm" + oidc: withPath},
			resource: "{}/mcp", requests: []string{prm + "/mcp", asm + "/realm", oidc + "/realm", "/realm" + oidc},
		},
		"metadata of another issuer": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `"issuer":"{}"`, `"issuer":"https://other.example"`, 1)}, err: auth.ErrMisconfigured,
		},
		"no S256": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `,"S256"`, ``, 1)}, err: auth.ErrMisconfigured,
		},
		"script as endpoint": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `"{}/authorize"`, `"javascript:alert(1)"`, 1)}, err: auth.ErrMisconfigured,
		},
		"plain http endpoint": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `"{}/token"`, `"http://as.example/token"`, 1)}, err: auth.ErrMisconfigured,
		},
		"no token endpoint": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: strings.Replace(goodAS, `"token_endpoint":"{}/token",`, ``, 1)}, err: auth.ErrMisconfigured,
		},
		"second server works": {
			docs: map[string]string{prm + "/mcp": `{"resource":"{}/mcp","authorization_servers":["{}/gone","{}"]}`, asm: goodAS}, resource: "{}/mcp",
		},
		"expected issuer": {
			docs:   map[string]string{prm + "/mcp": `{"resource":"{}/mcp","authorization_servers":["{}/realm","{}"]}`, asm: goodAS},
			issuer: "{}/", resource: "{}/mcp", requests: []string{prm + "/mcp", asm},
		},
		"another issuer than expected": {
			docs: map[string]string{prm + "/mcp": pathPRM, asm: goodAS}, issuer: "https://mine.example",
			err: auth.ErrMisconfigured, requests: []string{prm + "/mcp"},
		},
		"too large": {docs: map[string]string{prm + "/mcp": strings.Repeat(" ", 2<<20)}, err: auth.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.docs, s.codes = tc.docs, tc.codes
			full := func(v string) string { return strings.ReplaceAll(v, "{}", s.URL) }
			var headers []string
			if tc.challenge != "" {
				headers = []string{full(tc.challenge)}
			}
			found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", headers, discovery.Rules{Issuer: full(tc.issuer)})
			if tc.requests != nil {
				require.Equal(t, tc.requests, s.requests())
			}
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
				require.NotContains(t, err.Error(), "http://")
				return
			}
			require.NoError(t, err)
			require.Equal(t, full(tc.resource), found.Resource)
			if tc.scopes != nil {
				require.Equal(t, tc.scopes, found.Scopes)
			}
			require.True(t, found.Provider.Discovered)
			require.Equal(t, s.URL+"/token", found.Provider.TokenEndpoint)
			require.Empty(t, found.Provider.RegistrationEndpoint)
		})
	}
}

func TestLoopbackIsRefusedUnlessAllowed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	d := &discovery.Discoverer{HTTP: s.Client()}
	_, err := d.Server(t.Context(), s.URL+"/mcp", nil, discovery.Rules{})
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	_, err = d.Issuer(t.Context(), s.URL)
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.Empty(t, s.requests())
}

func TestIssuer(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.docs[oidc] = `{"issuer":"{}","authorization_endpoint":"{}/authorize","token_endpoint":"{}/token"}`
	p, err := s.discoverer().Issuer(t.Context(), s.URL)
	require.NoError(t, err, "OpenID providers need not announce PKCE")
	require.Equal(t, s.URL, p.Issuer)
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	url := s.URL
	s.Close()
	_, err := s.discoverer().Server(t.Context(), url+"/mcp?key=SECRET", nil, discovery.Rules{})
	require.ErrorIs(t, err, auth.ErrUnavailable)
	require.NotContains(t, err.Error(), "SECRET")
}
