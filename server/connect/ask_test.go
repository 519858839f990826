package connect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/server/connect"
)

func TestAsk(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	h.page.Deadline = time.Date(2030, 1, 2, 15, 4, 0, 0, time.UTC)
	a := h.get(t, "/connect?request=adk-r1&state=SECRETPUBLIC")
	requirePage(t, a, http.StatusOK, "Connect to provider.example")
	for _, want := range []string{
		"planner", "ada", "booker", "book", "calendar", "provider.example", "mcp.example", "calendar.read", "calendar.write",
		"What happens next", "link keeps working", `<button type="submit">Connect</button>`, "2 January 2030, 15:04 UTC",
	} {
		require.Contains(t, a.body, want)
	}
	require.True(t, h.allowed, "the operator may act for every owner")
	require.Zero(t, h.begun)
	require.Len(t, a.Cookies(), 1)
	require.Regexp(t, `^tarry-csrf=[A-Z2-7]{26}; Path=/; HttpOnly; SameSite=Lax$`, a.Header.Get("Set-Cookie"))
	h.requireSilentLogs(t)

	h.page.Deadline = time.Now().Add(-time.Second)
	requirePage(t, h.get(t, "/connect?request=adk-r1"), http.StatusGone, "Request expired")
}

func TestAskByStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[auth.Status]struct {
		code  int
		title string
	}{
		auth.StatusExchanging: {200, "Login in progress"},
		auth.StatusGranted:    {200, "Already connected"},
		auth.StatusDenied:     {200, "Already declined"},
		auth.StatusExpired:    {410, "Request expired"},
		auth.StatusCancelled:  {410, "Request cancelled"},
	} {
		t.Run(string(status), func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
			h.page.Status = status
			a := h.get(t, "/connect?request=adk-r1")
			requirePage(t, a, want.code, want.title)
			require.Empty(t, a.Cookies())

			a = h.get(t, "/connect?request=adk-r1&redirect_uri="+url.QueryEscape(returnURL))
			if status == auth.StatusExchanging {
				requirePage(t, a, 200, want.title)
				return
			}
			require.Equal(t, http.StatusSeeOther, a.StatusCode, "an ADK client's popup goes back at once")
			requireReturned(t, a)
			require.Zero(t, h.begun)
		})
	}
}

func requireReturned(t *testing.T, a answer) {
	t.Helper()
	back, err := a.Location()
	require.NoError(t, err)
	require.True(t, connect.IsTicket(back.Query().Get("code")))
	require.Equal(t, "corr", back.Query().Get("state"))
	back.RawQuery = ""
	require.Equal(t, returnURL, back.String())
	requireHeaders(t, a)
}

func TestAskRefused(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, path string
		err        error
		status     int
		title      string
	}{
		{"no request", "/connect", nil, 404, "Link not found"},
		{"unknown", "/connect?request=nope", nil, 404, "Link not found"},
		{"twice", "/connect?request=adk-r1&request=adk-r1", nil, 404, "Link not found"},
		{"long", "/connect?request=" + strings.Repeat("x", 200), nil, 404, "Link not found"},
		{"somebody else's", "/connect?request=adk-r1", connect.ErrUnknown, 404, "Link not found"},
		{"set-up", "/connect?request=adk-r1", &connect.MisconfiguredError{Text: "No issuer <b>"}, 500, "Set-up problem"},
		{"passing", "/connect?request=adk-r1", connect.ErrTryAgain, 500, "Try again"},
		{"other", "/connect?request=adk-r1", http.ErrBodyNotAllowed, 500, "Something went wrong"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			h.pageErr = tc.err
			a := h.get(t, tc.path)
			requirePage(t, a, tc.status, tc.title)
			require.Contains(t, a.body, a.Header.Get("X-Request-Id"))
			require.Empty(t, a.Cookies())
			require.NotContains(t, a.body, "<b>")
			require.NotContains(t, a.body, "http:", "the cause is not shown")
		})
	}
}

func TestNothingBeginsByLooking(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	for _, path := range []string{"/connect?request=adk-r1", "/oauth/callback/" + digest + "?state=SECRETs&code=SECRETc"} {
		a := h.do(t, http.MethodHead, path, nil)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Empty(t, a.Cookies())
		a = h.do(t, http.MethodGet, path, func(r *http.Request) { r.Header.Set("Sec-Purpose", "prefetch") })
		require.Equal(t, http.StatusServiceUnavailable, a.StatusCode)
		require.Empty(t, a.Cookies())
		requireHeaders(t, a)
	}
	require.Zero(t, h.pages+h.begun+h.completed)
}

func TestCanonicalHost(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	public := h.url
	h.url = strings.Replace(public, "127.0.0.1", "localhost", 1)
	a := h.get(t, "/connect?request=adk-r1&state=S&redirect_uri=https%3A%2F%2Fevil.example&other=1")
	require.Equal(t, http.StatusFound, a.StatusCode)
	require.Empty(t, a.Cookies(), "no cookie before the canonical name")
	require.Zero(t, h.pages)
	to, err := a.Location()
	require.NoError(t, err)
	require.Equal(t, public, to.Scheme+"://"+to.Host)
	require.Equal(t, "/connect", to.Path)
	require.Equal(t, "adk-r1", to.Query().Get("request"))
	require.False(t, to.Query().Has("other"))

	looped := h.do(t, http.MethodGet, to.RequestURI(), nil)
	requirePage(t, looped, 500, "Set-up problem")

	h.url = public
	requirePage(t, h.get(t, to.RequestURI()), 200, "Connect to provider.example")
}

func TestWrongCallers(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	for name, change := range map[string]func(*http.Request){
		"rebinding": func(r *http.Request) { r.Host = "evil.example" },
		"forwarded": func(r *http.Request) { r.Header.Set("X-Forwarded-Host", "evil.example") },
	} {
		for _, path := range []string{"/connect?request=adk-r1", "/oauth/callback/" + digest + "?state=s&code=c"} {
			a := h.do(t, http.MethodGet, path, change)
			require.Equal(t, http.StatusForbidden, a.StatusCode, name)
			require.Empty(t, a.Cookies())
			require.NotContains(t, a.body, "evil")
		}
	}
	require.Zero(t, h.pages+h.completed)
}

func TestHostileNames(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	hostile := `"><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}` + "\u202e"
	h.page.App, h.page.User, h.page.Agent, h.page.Tool, h.page.Toolset = hostile, hostile, hostile, hostile, hostile
	h.page.ProviderHost, h.page.ServerHost, h.page.Scopes = hostile, hostile, []string{hostile, strings.Repeat("x", 5000)}
	h.page.RequestID = "adk-r1"
	a := h.get(t, "/connect?request=adk-r1")
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.NotContains(t, a.body, "<script")
	require.NotContains(t, a.body, "<img")
	require.NotContains(t, a.body, "\u202e")
	require.NotContains(t, a.body, strings.Repeat("x", 300))

	h.result.App, h.result.Agent, h.result.ProviderHost = hostile, hostile, hostile
	a = h.get(t, "/oauth/callback/"+digest+"?state=s&code=c")
	requirePage(t, a, 200, "Connected")
	require.NotContains(t, a.body, "<img")
	h.page.Status = auth.StatusDenied
	a = h.get(t, "/connect?request=adk-r1")
	requirePage(t, a, 200, "Already declined")
	require.NotContains(t, a.body, "<img")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		config connect.Config
		ok     bool
	}{
		{"https", connect.Config{PublicURL: "https://tarry.example"}, true},
		{"https with port", connect.Config{PublicURL: "https://tarry.example:8443/"}, true},
		{"loopback", connect.Config{PublicURL: "http://localhost:8080", ReturnTo: []string{returnURL}}, true},
		{"IPv6 loopback", connect.Config{PublicURL: "http://[::1]:8080"}, true},
		{"http elsewhere", connect.Config{PublicURL: "http://tarry.example"}, false},
		{"path", connect.Config{PublicURL: "https://tarry.example/x"}, false},
		{"query", connect.Config{PublicURL: "https://tarry.example?x"}, false},
		{"user", connect.Config{PublicURL: "https://u@tarry.example"}, false},
		{"empty", connect.Config{}, false},
		{"short key", connect.Config{PublicURL: "https://tarry.example", Key: auth.NewSecret("k")}, false},
		{"return scheme", connect.Config{PublicURL: "https://tarry.example", ReturnTo: []string{"javascript:alert(1)"}}, false},
		{"return fragment", connect.Config{PublicURL: "https://tarry.example", ReturnTo: []string{"https://a.example/#x"}}, false},
		{"return relative", connect.Config{PublicURL: "https://tarry.example", ReturnTo: []string{"/dev-ui/"}}, false},
	} {
		_, err := connect.New(tc.config)
		require.Equal(t, tc.ok, err == nil, tc.name)
	}
}

func TestLink(t *testing.T) {
	t.Parallel()
	h, err := connect.New(connect.Config{PublicURL: "HTTPS://Tarry.example:443/"})
	require.NoError(t, err)
	require.Equal(t, "https://tarry.example/connect?request=a%26b", h.Link("a&b"))
}

// One login answers many runs; the page says so, and who asks.
func TestAskForManyRuns(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	h.page.Runs, h.page.Askers = 50, []connect.Asker{{Agent: "booker", Tool: "book", Toolset: "calendar"}, {Agent: "<b>clerk</b>", Toolset: "mail"}}
	a := h.get(t, "/connect?request=adk-r1")
	requirePage(t, a, http.StatusOK, "Connect to provider.example")
	for _, want := range []string{"50 runs wait", "booker", "book", "calendar", "&lt;b&gt;clerk&lt;/b&gt;", "mail"} {
		require.Contains(t, a.body, want)
	}
	require.NotContains(t, a.body, "more</li>")
	for range 30 {
		h.page.Askers = append(h.page.Askers, connect.Asker{Agent: "one"})
	}
	require.Contains(t, h.get(t, "/connect?request=adk-r1").body, "and 12 more")
}
