package connect_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/connect"
	"tarry/server/openapi/openapitest"
	"tarry/server/signin"
	"tarry/server/web"
)

const (
	digest      = "0123456789abcdef"
	providerURL = "https://provider.example/authorize?state=SECRETSTATE&code_challenge=x"
	flowName    = "tarry-flow-1"
	returnURL   = "http://localhost:8080/dev-ui/"
)

// fakeLogins answers as it is told and keeps what it was given.
type fakeLogins struct {
	mu        sync.Mutex
	page      connect.Page
	pageErr   error
	started   connect.Started
	beginErr  error
	result    connect.Result
	resultErr error

	pages, begun, completed int
	shown                   string
	callback                connect.Callback
	cookie                  auth.Secret
	answers                 []connect.Answer
	choices                 []connect.Choice
	allowed                 bool
}

func (f *fakeLogins) Page(_ context.Context, access auth.Access, requestID string) (connect.Page, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pages++
	f.allowed = access(agent.Owner{App: "app", User: "u"})
	if f.pageErr == nil && requestID != f.page.RequestID {
		return connect.Page{}, connect.ErrUnknown
	}
	return f.page, f.pageErr
}

func (f *fakeLogins) Begin(_ context.Context, access auth.Access, requestID, shown string) (connect.Started, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun++
	f.shown = shown
	f.allowed = access(agent.Owner{App: "app", User: "u"})
	if f.beginErr == nil && requestID != f.page.RequestID {
		return connect.Started{}, errors.New("begun with another id")
	}
	return f.started, f.beginErr
}

func (f *fakeLogins) Park(context.Context, signin.Principal, connect.Callback) (string, error) {
	return "", connect.ErrUnknown
}

func (f *fakeLogins) Answer(_ context.Context, access auth.Access, requestID string, a connect.Answer) (connect.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers = append(f.answers, a)
	f.allowed = access(agent.Owner{App: "app", User: "u"})
	if f.resultErr == nil && requestID != f.page.RequestID {
		return connect.Result{}, errors.New("answered with another id")
	}
	return f.result, f.resultErr
}

func (f *fakeLogins) Complete(_ context.Context, access auth.Access, c connect.Callback) (connect.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.completed++
	f.callback = c
	f.cookie = c.Cookie(flowName)
	f.allowed = access(agent.Owner{App: "app", User: "u"})
	return f.result, f.resultErr
}

func (f *fakeLogins) Account(_ context.Context, access auth.Access, c connect.Choice) (connect.Result, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.choices = append(f.choices, c)
	f.cookie = c.Cookie(flowName)
	f.allowed = access(agent.Owner{App: "app", User: "u"})
	return f.result, f.resultErr
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type harness struct {
	*fakeLogins

	url    string
	client *http.Client
	logs   *logBuffer
}

// serve runs the pages behind mode none on a free port; change sees the configuration first.
func serve(t *testing.T, secure bool, change func(*connect.Config)) *harness {
	t.Helper()
	logs := &logBuffer{}
	log := slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logins := &fakeLogins{
		page: connect.Page{
			RequestID: "adk-r1", App: "planner", User: "ada", Agent: "booker", Tool: "book", Toolset: "calendar",
			ProviderHost: "provider.example", ServerHost: "mcp.example", Scopes: []string{"calendar.read", "calendar.write"},
			Status: auth.StatusPending, Correlator: "corr", Created: time.Now(),
		},
		started: connect.Started{
			RedirectURL: providerURL, CookieName: flowName, Cookie: auth.NewSecret("SECRETCOOKIE"), Expires: time.Now().Add(time.Hour), Correlator: "corr",
		},
		result: connect.Result{
			Outcome: auth.StatusGranted, RequestID: "adk-r1", App: "planner", Agent: "booker", ProviderHost: "provider.example",
			Correlator: "corr",
		},
	}
	mux := http.NewServeMux()
	srv := httptest.NewUnstartedServer(openapitest.Check(t, web.Chain(mux, web.RequestIDs(), web.AccessLog(log), web.Recover(log))))
	address := "http://" + srv.Listener.Addr().String()
	if secure {
		address = "https://" + srv.Listener.Addr().String()
	}
	config := connect.Config{PublicURL: address, Logins: logins, Log: log}
	if change != nil {
		change(&config)
	}
	h, err := connect.New(config)
	require.NoError(t, err)
	h.Mount(mux, signin.None{Log: log}.Require(signin.Forms))
	if secure {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := srv.Client()
	client.Jar = jar
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &harness{fakeLogins: logins, url: address, client: client, logs: logs}
}

type answer struct {
	*http.Response

	body string
}

func (a answer) title() string {
	_, rest, _ := strings.Cut(a.body, "<title>")
	title, _, _ := strings.Cut(rest, "</title>")
	return title
}

func (a answer) field(name string) string {
	m := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(a.body)
	if m == nil {
		return ""
	}
	return m[1]
}

func (h *harness) do(t *testing.T, method, path string, change func(*http.Request)) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.url+path, http.NoBody)
	require.NoError(t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if change != nil {
		change(r)
	}
	res, err := h.client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	return answer{Response: res, body: string(text)}
}

func (h *harness) get(t *testing.T, path string) answer {
	t.Helper()
	return h.do(t, http.MethodGet, path, nil)
}

// press opens the page with further parameters and sends its form as a browser does: the page's no-referrer policy makes
// the Origin null.
func (h *harness) press(t *testing.T, more string, change func(url.Values, *http.Request)) answer {
	t.Helper()
	page := h.get(t, "/connect?request=adk-r1"+more)
	require.Equal(t, http.StatusOK, page.StatusCode)
	form := url.Values{"request": {page.field("request")}, "csrf": {page.field("csrf")}, "shown": {page.field("shown")}}
	if back := page.field("redirect_uri"); back != "" {
		form.Set("redirect_uri", back)
	}
	return h.post(t, "/connect", form, change)
}

// post sends a form from a page of ours.
func (h *harness) post(t *testing.T, path string, form url.Values, change func(url.Values, *http.Request)) answer {
	t.Helper()
	return h.do(t, http.MethodPost, path, func(r *http.Request) {
		r.Header.Set("Origin", "null")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if change != nil {
			change(form, r)
		}
		r.Body = io.NopCloser(strings.NewReader(form.Encode()))
		r.ContentLength = int64(len(form.Encode()))
	})
}

func requirePage(t *testing.T, a answer, status int, title string) {
	t.Helper()
	require.Equal(t, status, a.StatusCode, a.body)
	require.Equal(t, title, a.title())
	require.Contains(t, a.body, `<html lang="en">`)
	require.NotContains(t, a.body, "<script")
	require.NotContains(t, a.body, "SECRET")
	requireHeaders(t, a)
	csp := a.Header.Get("Content-Security-Policy")
	if strings.Contains(a.body, "<form") {
		require.NotContains(t, csp, "form-action")
	} else {
		require.Contains(t, csp, "form-action 'none'")
	}
}

func requireHeaders(t *testing.T, a answer) {
	t.Helper()
	require.Equal(t, "no-store", a.Header.Get("Cache-Control"))
	require.Equal(t, "no-referrer", a.Header.Get("Referrer-Policy"))
	require.Equal(t, "nosniff", a.Header.Get("X-Content-Type-Options"))
	require.Empty(t, a.Header.Get("Cross-Origin-Opener-Policy"))
	csp := a.Header.Get("Content-Security-Policy")
	require.Contains(t, csp, "default-src 'none'")
	require.Contains(t, csp, "frame-ancestors 'none'")
	require.NotContains(t, csp, "unsafe")
	require.NotContains(t, csp, "script-src")
}

func (h *harness) requireSilentLogs(t *testing.T) {
	t.Helper()
	require.NotContains(t, h.logs.String(), "SECRET")
}
