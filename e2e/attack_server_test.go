package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// hostile is a host that is an MCP server, its metadata and an authorization server at once, below one path for each
// trick, and writes down who came.
type hostile struct {
	*httptest.Server
	mu     sync.Mutex
	seen   []string // METHOD PATH
	tokens []string // Authorization headers
	tricks map[string]trick
}

// trick says what is wrong at one path; the zero value behaves.
type trick struct {
	challenge string                                       // the whole WWW-Authenticate
	resource  http.HandlerFunc                             // protected resource metadata
	metadata  func(issuer string, doc map[string]any)      // authorization server metadata
	serve     func(w http.ResponseWriter, _ *http.Request) // instead of a 401
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	h := &hostile{tricks: map[string]trick{}}
	h.Server = httptest.NewServer(h)
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

func (h *hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	h.mu.Lock()
	trick := h.tricks[name]
	h.seen = append(h.seen, r.Method+" "+r.URL.Path)
	if token := r.Header.Get("Authorization"); token != "" {
		h.tokens = append(h.tokens, token)
	}
	h.mu.Unlock()
	me := h.URL + "/" + name
	switch {
	case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource"):
		if trick.resource != nil {
			trick.resource(w, r)
			return
		}
		answer(w, map[string]any{"resource": me, "authorization_servers": []string{me}})
	case strings.HasPrefix(r.URL.Path, "/.well-known/"):
		doc := map[string]any{
			"issuer": me, "authorization_endpoint": me + "/authorize", "token_endpoint": me + "/token", "registration_endpoint": me + "/register",
			"code_challenge_methods_supported": []string{"S256"},
		}
		if trick.metadata != nil {
			trick.metadata(me, doc)
		}
		answer(w, doc)
	case trick.serve != nil:
		trick.serve(w, r)
	default:
		if trick.challenge == "" {
			trick.challenge = "Bearer"
		}
		w.Header().Set("WWW-Authenticate", trick.challenge)
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func answer(w http.ResponseWriter, doc map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc)
}

func (h *hostile) came(prefix string) (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.seen {
		if strings.HasPrefix(s, prefix) {
			out = append(out, s)
		}
	}
	return out
}

func (h *hostile) gotTokens() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string{}, h.tokens...)
}

// toolset is an agent with one MCP server of its own; args go below the connection.
func toolset(name, url, args string) string {
	return "name: " + name + "\nmodel: ${var:MODEL}\ninstruction: Help.\ntools:\n  - name: McpToolset\n    args:\n" +
		"      streamable_http_connection_params:\n        url: " + url + "\n" + args
}

// Metadata that leads into the cloud's or the network's inside, to another server's identity or nowhere: nobody is asked,
// nothing is fetched from there, no token goes anywhere, and the run goes on without the tools (pitfalls M9, M13, M35).
func TestHostileServers(t *testing.T) {
	t.Parallel()
	h := newHostile(t)
	provider, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, provider.Start(""))
	t.Cleanup(func() { require.NoError(t, provider.Close()) })
	good, err := demo.NewMCPServer(demo.MCPConfig{Provider: provider})
	require.NoError(t, err)
	require.NoError(t, good.Start(""))
	t.Cleanup(func() { require.NoError(t, good.Close()) })
	says := func(resource string, servers ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if resource == "" {
				resource = h.URL + r.URL.Path[strings.LastIndex(r.URL.Path, "/"):]
			}
			answer(w, map[string]any{"resource": resource, "authorization_servers": servers})
		}
	}
	endpoint := func(name, value string) trick {
		return trick{metadata: func(_ string, doc map[string]any) { doc[name] = value }}
	}
	const inside = "https://169.254.169.254"
	h.tricks = map[string]trick{
		"elsewhere":   {challenge: `Bearer resource_metadata="` + inside + `/latest/meta-data"`},
		"other_port":  {challenge: `Bearer resource_metadata="` + good.MetadataURL() + `"`},
		"cloud":       {resource: says("", inside)},
		"cloud_name":  {resource: says("", "http://metadata.google.internal")},
		"private":     {resource: says("", "https://10.0.0.1", "https://192.168.1.1")},
		"mapped":      {resource: says("", "https://[::ffff:169.254.169.254]")},
		"octal":       {resource: says("", "http://0251.0376.0251.0376")},
		"file":        {resource: says("", "file:///etc/passwd")},
		"user_info":   {resource: says("", "https://a:b@127.0.0.1")},
		"redirecting": {resource: func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inside+"/latest", http.StatusFound) }},
		"to_plain": {resource: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusTemporaryRedirect)
		}},
		"huge": {resource: func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"resource":%q}`, strings.Repeat("x", 3<<20))
		}},
		"deep":        {resource: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(strings.Repeat("[", 1<<19))) }},
		"not_mine":    {resource: says(good.URL(), provider.Issuer())},
		"script":      endpoint("authorization_endpoint", "javascript:alert(document.cookie)"),
		"data":        endpoint("authorization_endpoint", "data:text/html,hello"),
		"plain_http":  endpoint("authorization_endpoint", "http://evil.example/authorize"),
		"token_plain": endpoint("token_endpoint", "http://169.254.169.254/token"),
		"no_pkce":     {metadata: func(_ string, doc map[string]any) { delete(doc, "code_challenge_methods_supported") }},
		"imposter":    {metadata: func(_ string, doc map[string]any) { doc["issuer"] = provider.Issuer() }},
		"moving": {serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, good.URL(), http.StatusTemporaryRedirect)
		}},
	}
	o := options{provider: provider, agents: map[string]string{}, script: "agents:\n"}
	for name := range h.tricks {
		o.agents[name+"/root_agent.yaml"] = toolset(name, h.URL+"/"+name, "")
		o.script += "  - agent: " + name + "\n    steps: [{text: without tools}]\n"
	}
	// These look right until the person presses the button.
	h.tricks["register"] = endpoint("registration_endpoint", inside+"/register")
	script := h.tricks["register"]
	script.challenge = `Bearer scope="<script>alert(1)</script> tickets:read <img/src=x/onerror=alert(1)>"`
	h.tricks["register"] = script
	h.tricks["register_moves"] = trick{metadata: func(issuer string, doc map[string]any) { doc["registration_endpoint"] = issuer + "/moved" }}
	h.tricks["moved"] = trick{serve: func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside, http.StatusPermanentRedirect)
	}}
	late := []string{"register", "register_moves"}
	for _, name := range late {
		o.agents[name+"/root_agent.yaml"] = toolset(name, h.URL+"/"+name, "")
		o.script += "  - agent: " + name + "\n    steps: [{text: without tools}]\n"
	}
	w := newWorld(t, o)
	runs := map[string]runHandle{}
	for name := range h.tricks {
		if name != "moved" {
			runs[name] = w.api.start(name, "Go.")
		}
	}
	for _, name := range late {
		b := demo.NewBrowser()
		asked := w.visit(b, w.waiting(runs[name]))
		require.NotContains(t, asked.Body, "<script", name)
		require.NotContains(t, asked.Body, "<img", name)
		require.Equal(t, name == "register", strings.Contains(asked.Text, "<script>alert(1)</script>"), name)
		page, err := b.Press(t.Context(), asked, "connect")
		require.NoError(t, err)
		require.Equal(t, "Set-up problem", page.Title, name)
		require.Empty(t, w.query(`SELECT state_hash FROM flows`), name)
		delete(runs, name)
	}
	for name, r := range runs {
		s := w.finished(r)
		require.Equal(t, "done", s.InvocationStatus, name)
		require.Equal(t, "without tools", s.Answer, name)
		require.Empty(t, asks(r.events()), name)
		require.NotEmpty(t, h.came("POST /"+name), name)
	}
	require.Empty(t, h.gotTokens())
	require.Empty(t, good.Requests(), "a redirect was followed")
	require.Empty(t, provider.Requests(), "somebody else's provider was used")
	require.Empty(t, h.came("POST /moved/"))
}

// Without the switch for development nothing on this machine is reached, whatever a definition says.
func TestLoopbackIsClosedInProduction(t *testing.T) {
	t.Parallel()
	o := single(text("without tools"))
	o.env = []string{"TARRY_DEV=false"}
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	require.Equal(t, "without tools", w.finished(r).Answer)
	require.Empty(t, w.mcp.Requests())
	require.Empty(t, w.provider.Requests())
}
