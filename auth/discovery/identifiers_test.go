package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/discovery"
)

// Identifiers are kept as they are written: a slash at the end is overlooked where two are compared, and nowhere else.
func TestIssuersAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	as := func(issuer string) string {
		return `{"issuer":"` + issuer + `","authorization_endpoint":"{}/authorize","token_endpoint":"{}/token","code_challenge_methods_supported":["S256"]}`
	}
	for name, tc := range map[string]struct {
		listed   string // in the resource's metadata
		docs     map[string]string
		codes    map[string]int
		issuer   string // that is kept; empty: an error
		err      error
		requests []string // after the resource's metadata
	}{
		"plain":                         {listed: "{}", docs: map[string]string{asm: as("{}")}, issuer: "{}", requests: []string{asm}},
		"slash listed, none in it":      {listed: "{}/", docs: map[string]string{asm: as("{}")}, issuer: "{}", requests: []string{asm}},
		"none listed, slash in it":      {listed: "{}", docs: map[string]string{asm: as("{}/")}, issuer: "{}/", requests: []string{asm}},
		"slash and OpenID":              {listed: "{}/", docs: map[string]string{oidc: as("{}/")}, issuer: "{}/", requests: []string{asm, oidc}},
		"path":                          {listed: "{}/realm", docs: map[string]string{asm + "/realm": as("{}/realm")}, issuer: "{}/realm", requests: []string{asm + "/realm"}},
		"path, second place":            {listed: "{}/realm", docs: map[string]string{oidc + "/realm": as("{}/realm")}, issuer: "{}/realm", requests: []string{asm + "/realm", oidc + "/realm"}},
		"path with slash, third place":  {listed: "{}/a/b/", docs: map[string]string{"/a/b" + oidc: as("{}/a/b/")}, issuer: "{}/a/b/", requests: []string{asm + "/a/b", oidc + "/a/b", "/a/b" + oidc}},
		"path is not the root's":        {listed: "{}/realm", docs: map[string]string{asm: as("{}/realm")}, err: auth.ErrMisconfigured, requests: []string{asm + "/realm", oidc + "/realm", "/realm" + oidc}},
		"metadata of the root for path": {listed: "{}/realm", docs: map[string]string{asm + "/realm": as("{}")}, err: auth.ErrMisconfigured},
		"two slashes are another":       {listed: "{}", docs: map[string]string{asm: as("{}//")}, err: auth.ErrMisconfigured},
		"another case is another":       {listed: "{}/realm", docs: map[string]string{asm + "/realm": as("{}/Realm")}, err: auth.ErrMisconfigured},
		"catch-all, right one behind":   {listed: "{}", docs: map[string]string{asm: as("https://catch-all.example"), oidc: as("{}")}, issuer: "{}", requests: []string{asm, oidc}},
		"query":                         {listed: "{}?tenant=1", err: auth.ErrMisconfigured, requests: []string{}},
		"fragment":                      {listed: "{}#x", err: auth.ErrMisconfigured, requests: []string{}},
		"no URL":                        {listed: "javascript:alert(1)", err: auth.ErrMisconfigured, requests: []string{}},
		"401 is no document":            {listed: "{}", docs: map[string]string{oidc: as("{}")}, codes: map[string]int{asm: 401}, issuer: "{}", requests: []string{asm, oidc}},
		"403 is no document":            {listed: "{}", docs: map[string]string{oidc: as("{}")}, codes: map[string]int{asm: 403}, issuer: "{}", requests: []string{asm, oidc}},
		"408 says nothing":              {listed: "{}", docs: map[string]string{oidc: as("{}")}, codes: map[string]int{asm: 408}, err: auth.ErrUnavailable, requests: []string{asm}},
		"429 says nothing":              {listed: "{}", docs: map[string]string{oidc: as("{}")}, codes: map[string]int{asm: 429}, err: auth.ErrUnavailable, requests: []string{asm}},
		"500 says nothing":              {listed: "{}", docs: map[string]string{oidc: as("{}")}, codes: map[string]int{asm: 500}, err: auth.ErrUnavailable, requests: []string{asm}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.docs = map[string]string{prm + "/mcp": `{"resource":"{}/mcp","authorization_servers":["` + tc.listed + `"]}`}
			for path, doc := range tc.docs {
				s.docs[path] = doc
			}
			s.codes = tc.codes
			found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", nil, discovery.Rules{})
			if tc.requests != nil {
				require.Equal(t, append([]string{prm + "/mcp"}, tc.requests...), s.requests())
			}
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(tc.issuer, "{}", s.URL), found.Provider.Issuer)
		})
	}
}

func TestResourcesAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		path     string // of the server, with its query
		docs     map[string]string
		resource string // empty: an error
		requests []string
	}{
		"path":                         {path: "/mcp", docs: map[string]string{prm + "/mcp": "{}/mcp"}, resource: "{}/mcp", requests: []string{prm + "/mcp"}},
		"slash that it has and we not": {path: "/mcp", docs: map[string]string{prm + "/mcp": "{}/mcp/"}, resource: "{}/mcp/"},
		"slash that we have":           {path: "/mcp/", docs: map[string]string{prm + "/mcp": "{}/mcp"}, resource: "{}/mcp", requests: []string{prm + "/mcp"}},
		"query":                        {path: "/mcp?tenant=1", docs: map[string]string{prm + "/mcp": "{}/mcp?tenant=1"}, resource: "{}/mcp?tenant=1", requests: []string{prm + "/mcp?tenant=1"}},
		"query that it leaves out":     {path: "/mcp?tenant=1", docs: map[string]string{prm + "/mcp": "{}/mcp"}, resource: "{}/mcp"},
		"query of another":             {path: "/mcp?tenant=1", docs: map[string]string{prm + "/mcp": "{}/mcp?tenant=2"}},
		"query, document at the root":  {path: "/mcp?tenant=1", docs: map[string]string{prm: "{}"}, resource: "{}", requests: []string{prm + "/mcp?tenant=1", prm + "/mcp", prm}},
		"query at the root":            {path: "/?tenant=1", docs: map[string]string{prm: "{}/"}, resource: "{}/", requests: []string{prm + "?tenant=1"}},
		"root":                         {path: "", docs: map[string]string{prm: "{}"}, resource: "{}", requests: []string{prm}},
		"root with slash":              {path: "/", docs: map[string]string{prm: "{}/"}, resource: "{}/", requests: []string{prm}},
		"root about a path":            {path: "/mcp", docs: map[string]string{prm: "{}/mcp"}, resource: "{}/mcp"},
		"root about another path":      {path: "/mcp", docs: map[string]string{prm: "{}/other"}},
		"path about the origin":        {path: "/mcp", docs: map[string]string{prm + "/mcp": "{}"}},
		"path above":                   {path: "/a/mcp", docs: map[string]string{prm + "/a/mcp": "{}/a"}},
		"foreign origin":               {path: "/mcp", docs: map[string]string{prm + "/mcp": "https://victim.example/mcp"}, requests: []string{prm + "/mcp"}},
		"foreign port":                 {path: "/mcp", docs: map[string]string{prm + "/mcp": "http://127.0.0.1:1/mcp"}},
		"no resource":                  {path: "/mcp", docs: map[string]string{prm + "/mcp": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.docs[asm] = goodAS
			for path, resource := range tc.docs {
				s.docs[path] = `{"resource":"` + resource + `","authorization_servers":["{}"]}`
			}
			found, err := s.discoverer().Server(t.Context(), s.URL+tc.path, nil, discovery.Rules{})
			if tc.requests != nil {
				require.Equal(t, tc.requests, s.requests()[:len(tc.requests)])
			}
			if tc.resource == "" {
				require.ErrorIs(t, err, auth.ErrMisconfigured)
				require.NotContains(t, s.requests(), asm, "no authorization server is asked")
				return
			}
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(tc.resource, "{}", s.URL), found.Resource)
		})
	}
}

// RFC 9728 section 7.6 leaves the choice to the client: the first that works, unless a definition has chosen.
func TestSeveralAuthorizationServers(t *testing.T) {
	t.Parallel()
	realm := func(name string) string { return strings.ReplaceAll(withPath, "realm", name) }
	for name, tc := range map[string]struct {
		servers string
		docs    map[string]string
		codes   map[string]int
		issuer  string
		want    string
		err     error
	}{
		"first":                   {servers: `"{}/a","{}/b"`, docs: map[string]string{asm + "/a": realm("a"), asm + "/b": realm("b")}, want: "{}/a"},
		"first has no metadata":   {servers: `"{}/a","{}/b"`, docs: map[string]string{asm + "/b": realm("b")}, want: "{}/b"},
		"first promises no PKCE":  {servers: `"{}/a","{}/b"`, docs: map[string]string{asm + "/a": strings.Replace(realm("a"), "S256", "plain", 1), asm + "/b": realm("b")}, want: "{}/b"},
		"first is down":           {servers: `"{}/a","{}/b"`, codes: map[string]int{asm + "/a": 503}, docs: map[string]string{asm + "/b": realm("b")}, err: auth.ErrUnavailable},
		"none works":              {servers: `"{}/a","{}/b"`, err: auth.ErrMisconfigured},
		"the definition's":        {servers: `"{}/a","{}/b"`, docs: map[string]string{asm + "/a": realm("a"), asm + "/b": realm("b")}, issuer: "{}/b", want: "{}/b"},
		"the definition's, slash": {servers: `"{}/a","{}/b/"`, docs: map[string]string{asm + "/b": realm("b")}, issuer: "{}/b", want: "{}/b"},
		"not the definition's":    {servers: `"{}/a"`, docs: map[string]string{asm + "/a": realm("a")}, issuer: "{}/c", err: auth.ErrMisconfigured},
		"too many":                {servers: `"{}/1","{}/2","{}/3","{}/4","{}/5","{}/a"`, docs: map[string]string{asm + "/a": realm("a")}, err: auth.ErrMisconfigured},
		"null":                    {servers: `null`, err: auth.ErrMisconfigured},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.docs = map[string]string{prm + "/mcp": `{"resource":"{}/mcp","authorization_servers":[` + tc.servers + `]}`}
			for path, doc := range tc.docs {
				s.docs[path] = doc
			}
			s.codes = tc.codes
			full := func(v string) string { return strings.ReplaceAll(v, "{}", s.URL) }
			found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", nil, discovery.Rules{Issuer: full(tc.issuer)})
			if tc.err != nil {
				require.ErrorIs(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, full(tc.want), found.Provider.Issuer)
		})
	}
}

func TestNoLoginNeedsNoAuthorizationEndpoint(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.docs = map[string]string{prm + "/mcp": pathPRM, asm: `{"issuer":"{}","token_endpoint":"{}/token"}`}
	_, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", nil, discovery.Rules{})
	require.ErrorContains(t, err, "has no authorization endpoint")
	found, err := s.discoverer().Server(t.Context(), s.URL+"/mcp", nil, discovery.Rules{NoLogin: true})
	require.NoError(t, err)
	require.Empty(t, found.Provider.AuthorizationEndpoint)
}
