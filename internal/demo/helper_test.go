package demo_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/safehttp"
)

const resource = "https://planner.example/mcp"

// app is an OAuth client that speaks to a provider the plain way.
type app struct {
	t        *testing.T
	p        *demo.Provider
	http     *safehttp.Client
	callback *httptest.Server
	// client as registered.
	id, secret, method string
	verifier           string
	resource           string
}

func newProvider(t *testing.T, cfg demo.ProviderConfig) *demo.Provider {
	t.Helper()
	p, err := demo.NewProvider(cfg)
	require.NoError(t, err)
	require.NoError(t, p.Start(""))
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func newApp(t *testing.T, p *demo.Provider, method string) *app {
	t.Helper()
	a := &app{t: t, p: p, http: safehttp.New(safehttp.Config{AllowLoopback: true}), method: method, resource: resource}
	t.Cleanup(a.http.CloseIdleConnections)
	a.callback = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<title>Back</title><body>You can <b>close</b> this page.")
	}))
	t.Cleanup(a.callback.Close)
	a.verifier = rand.Text() + rand.Text()
	var reg struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	status := a.postJSON(p.RegistrationURL(), map[string]any{
		"redirect_uris": []string{a.redirect()}, "client_name": "Planner", "application_type": "native",
		"grant_types":                []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_method": method,
	}, &reg)
	if status == http.StatusCreated {
		a.id, a.secret = reg.ClientID, reg.ClientSecret
	}
	return a
}

func (a *app) redirect() string { return a.callback.URL + "/cb" }

func (a *app) challenge() string {
	sum := sha256.Sum256([]byte(a.verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// authorizeURL is a correct request; change what a test is about. An empty value removes a parameter.
func (a *app) authorizeURL(change map[string]string) string {
	q := url.Values{
		"response_type": {"code"}, "client_id": {a.id}, "redirect_uri": {a.redirect()}, "state": {"state-" + a.id},
		"scope": {demo.ScopeRead}, "code_challenge": {a.challenge()}, "code_challenge_method": {"S256"}, "resource": {a.resource},
	}
	apply(q, change)
	return a.p.AuthorizeURL() + "?" + q.Encode()
}

func apply(q url.Values, change map[string]string) {
	for k, v := range change {
		q.Del(k)
		if v != "" {
			q.Set(k, v)
		}
	}
}

// login goes through the pages and returns the parameters of the callback.
func (a *app) login(b *demo.Browser, user string) url.Values {
	a.t.Helper()
	page, err := b.Login(a.t.Context(), a.authorizeURL(nil), user, user+"-password")
	require.NoError(a.t, err)
	require.Equal(a.t, "Back", page.Title)
	return page.URL.Query()
}

func (a *app) code() string {
	a.t.Helper()
	code := a.login(demo.NewBrowser(), "alice").Get("code")
	require.NotEmpty(a.t, code)
	return code
}

type answer struct {
	status  int
	header  http.Header
	body    string
	fields  map[string]any
	access  string
	refresh string
	err     string
}

func (a *app) redeem(code string, change map[string]string) answer {
	a.t.Helper()
	return a.token(url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {a.redirect()},
		"code_verifier": {a.verifier}, "resource": {a.resource},
	}, change)
}

func (a *app) renew(refresh string, change map[string]string) answer {
	a.t.Helper()
	return a.token(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}, "resource": {a.resource}}, change)
}

func (a *app) token(form url.Values, change map[string]string) answer {
	a.t.Helper()
	apply(form, change)
	return a.post(a.t.Context(), a.p.TokenURL(), form)
}

func (a *app) post(ctx context.Context, endpoint string, form url.Values) answer {
	a.t.Helper()
	if a.method != demo.AuthBasic && !form.Has("client_id") {
		form.Set("client_id", a.id)
	}
	if a.method == demo.AuthPost {
		form.Set("client_secret", a.secret)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if a.method == demo.AuthBasic {
		req.SetBasicAuth(url.QueryEscape(a.id), url.QueryEscape(a.secret))
	}
	return a.do(req)
}

func (a *app) do(req *http.Request) answer {
	a.t.Helper()
	resp, err := a.http.Do(req)
	require.NoError(a.t, err)
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(a.t, err)
	out := answer{status: resp.StatusCode, header: resp.Header, body: string(body)}
	if json.Unmarshal(body, &out.fields) == nil {
		out.access, _ = out.fields["access_token"].(string)
		out.refresh, _ = out.fields["refresh_token"].(string)
		out.err, _ = out.fields["error"].(string)
	}
	return out
}

func (a *app) get(rawURL string) answer {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodGet, rawURL, nil)
	require.NoError(a.t, err)
	return a.do(req)
}

func (a *app) postJSON(endpoint string, body, into any) int {
	a.t.Helper()
	data, err := json.Marshal(body)
	require.NoError(a.t, err)
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPost, endpoint, strings.NewReader(string(data)))
	require.NoError(a.t, err)
	req.Header.Set("Content-Type", "application/json")
	got := a.do(req)
	if into != nil && got.fields != nil {
		require.NoError(a.t, json.Unmarshal([]byte(got.body), into))
	}
	return got.status
}
