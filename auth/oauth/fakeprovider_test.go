package oauth_test

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/oauth"
)

// provider is an authorization server and the host of an MCP server, at one origin. It checks PKCE, redirect URI,
// resource, client and the single use of codes and refresh tokens; knobs make it misbehave.
type provider struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex
	clients  map[string]string // id → secret
	codes    map[string]url.Values
	refresh  map[string]url.Values
	requests []url.Values // token requests
	auths    []string     // Authorization headers of token requests
	register []map[string]any
	gets     []string

	keys       map[string]any // client → public key
	audience   string         // of assertions, instead of the issuer
	assertions []assertion    // those that were taken

	noRegistration bool
	noResource     bool
	noScopes       bool
	legacy         bool // no resource metadata
	noMetadata     bool
	registerSecret string
	// onRegister runs in a registration request before it is answered; registerRaw replaces the answer.
	onRegister  func()
	registerRaw func() (int, string)
	noRefresh   bool // clients with the grant refresh_token are refused
	metadata    map[string]any
	resource    string   // what the MCP server calls itself, instead of its URL
	servers     []string // of the resource, instead of the provider itself
	hide        bool     // the resource's metadata cannot be read
	hang        bool     // nor is there an answer
	metadataAt  string   // where the resource's metadata is, instead of its well-known place
	// before runs in a token request, before it is answered; it may block.
	before func(form url.Values)
	// answer changes the fields of a successful answer.
	answer func(form url.Values, fields map[string]any)
	// raw replaces an answer: status, content type, body.
	raw func(form url.Values) (int, string, string)
	// keepRefresh leaves the refresh token out of refresh answers.
	keepRefresh bool
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{t: t, clients: map[string]string{"client": "s+cr/t:1"}, codes: map[string]url.Values{}, refresh: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", p.token)
	mux.HandleFunc("POST /register", p.registration)
	mux.HandleFunc("GET /.well-known/", p.wellKnown)
	mux.HandleFunc("GET /elsewhere", p.wellKnown)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) mcp() string { return p.URL + "/mcp" }

func (p *provider) set(change func(*provider)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *provider) tokenRequests() []url.Values {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

func (p *provider) discoveries() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.gets)
}

func (p *provider) wellKnown(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gets = append(p.gets, r.URL.Path)
	var doc map[string]any
	switch {
	case p.hang && strings.Contains(r.URL.Path, "resource"):
		p.mu.Unlock()
		<-r.Context().Done()
		p.mu.Lock()
	case p.hide && strings.Contains(r.URL.Path, "resource"):
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case r.URL.Path == cmp.Or(p.metadataAt, "/.well-known/oauth-protected-resource/mcp") && !p.legacy:
		doc = map[string]any{"resource": p.mcp(), "authorization_servers": []string{p.URL}}
		if p.resource != "" {
			doc["resource"] = p.resource
		}
		if p.servers != nil {
			doc["authorization_servers"] = p.servers
		}
		if !p.noScopes {
			doc["scopes_supported"] = []string{"read"}
		}
	case r.URL.Path == "/.well-known/oauth-authorization-server" && !p.noMetadata:
		doc = map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
		}
		if !p.noRegistration {
			doc["registration_endpoint"] = p.URL + "/register"
		}
		for k, v := range p.metadata {
			doc[k] = v
		}
	default:
		http.NotFound(w, r)
		return
	}
	writeJSON(w, http.StatusOK, doc)
}

func (p *provider) registration(w http.ResponseWriter, r *http.Request) {
	if p.onRegister != nil {
		p.onRegister()
	}
	if p.registerRaw != nil {
		status, body := p.registerRaw()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	p.register = append(p.register, body)
	if p.noRefresh && slices.Contains(body["grant_types"].([]any), any("refresh_token")) {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_client_metadata"})
		return
	}
	id := "dyn-" + random()
	p.clients[id] = p.registerSecret
	out := map[string]any{"client_id": id, "redirect_uris": body["redirect_uris"]}
	if p.registerSecret != "" {
		out["client_secret"] = p.registerSecret
		out["token_endpoint_auth_method"] = body["token_endpoint_auth_method"]
	}
	writeJSON(w, http.StatusCreated, out)
}

// approve is the person and the authorization endpoint: it turns the URL that the browser was sent to into the callback
// that it comes back with.
func (p *provider) approve(redirect string) oauth.Callback {
	u, err := url.Parse(redirect)
	require.NoError(p.t, err)
	q := u.Query()
	require.Equal(p.t, "/authorize", u.Path)
	require.Equal(p.t, "code", q.Get("response_type"))
	require.Equal(p.t, "S256", q.Get("code_challenge_method"))
	require.Len(p.t, q.Get("code_challenge"), 43)
	require.GreaterOrEqual(p.t, len(q.Get("state")), 22)
	back, err := url.Parse(q.Get("redirect_uri"))
	require.NoError(p.t, err)
	code := "code-" + random()
	p.set(func(p *provider) {
		require.Contains(p.t, p.clients, q.Get("client_id"))
		p.codes[code] = q
	})
	return oauth.Callback{
		Digest: back.Path[strings.LastIndex(back.Path, "/")+1:], State: q.Get("state"), Code: code, Iss: p.URL, IssPresent: true,
	}
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	p.mu.Lock()
	p.requests = append(p.requests, r.PostForm)
	p.auths = append(p.auths, r.Header.Get("Authorization"))
	before, raw := p.before, p.raw
	p.mu.Unlock()
	if raw != nil {
		if status, kind, body := answerOf(raw, r.PostForm); status != 0 {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body)) //nolint:gosec // G705: a fake says what its test wants
			return
		}
	}
	p.mu.Lock()
	fields, code := p.redeem(r)
	p.mu.Unlock()
	if before != nil {
		before(r.PostForm)
	}
	if code != "" {
		status := http.StatusBadRequest
		if code == "invalid_client" {
			status = http.StatusUnauthorized
		}
		writeJSON(w, status, map[string]any{"error": code, "error_description": "<script>DESCRIPTION</script>"})
		return
	}
	writeJSON(w, http.StatusOK, fields)
}

// redeem consumes a code or refresh token. p is locked.
func (p *provider) redeem(r *http.Request) (fields map[string]any, oauthError string) {
	form := r.PostForm
	id, secret := form.Get("client_id"), form.Get("client_secret")
	if user, pass, ok := r.BasicAuth(); ok {
		id, _ = url.QueryUnescape(user)
		secret, _ = url.QueryUnescape(pass)
	}
	if form.Has("client_assertion") {
		var ok bool
		if id, ok = p.asserted(form); !ok {
			return nil, "invalid_client"
		}
	} else if want, ok := p.clients[id]; !ok || want != secret {
		return nil, "invalid_client"
	}
	var granted url.Values
	switch form.Get("grant_type") {
	case "authorization_code":
		granted = p.codes[form.Get("code")]
		delete(p.codes, form.Get("code"))
		sum := sha256.Sum256([]byte(form.Get("code_verifier")))
		if granted == nil || granted.Get("client_id") != id || granted.Get("redirect_uri") != form.Get("redirect_uri") ||
			granted.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			return nil, "invalid_grant"
		}
	case "refresh_token":
		granted = p.refresh[form.Get("refresh_token")]
		if granted == nil {
			return nil, "invalid_grant"
		}
		if !p.keepRefresh {
			delete(p.refresh, form.Get("refresh_token"))
		}
	case "client_credentials":
		granted = url.Values{"scope": form["scope"]}
		if form.Has("resource") {
			granted["resource"] = form["resource"]
		}
	default:
		return nil, "unsupported_grant_type"
	}
	if granted.Get("resource") != form.Get("resource") || p.noResource == form.Has("resource") {
		return nil, "invalid_target"
	}
	fields = map[string]any{"access_token": "access-" + random(), "token_type": "bEARER", "expires_in": 3600, "scope": granted.Get("scope")}
	if granted.Get("scope") == "" {
		delete(fields, "scope")
	}
	if form.Get("grant_type") == "authorization_code" || form.Get("grant_type") == "refresh_token" && !p.keepRefresh {
		next := "refresh-" + random()
		p.refresh[next] = granted
		fields["refresh_token"] = next
	}
	if p.answer != nil {
		p.answer(form, fields)
	}
	return fields, ""
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func random() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// answerOf lets a raw answer that panics drop the connection.
func answerOf(raw func(url.Values) (int, string, string), form url.Values) (status int, kind, body string) {
	defer func() {
		if recover() != nil {
			panic(http.ErrAbortHandler)
		}
	}()
	return raw(form)
}
