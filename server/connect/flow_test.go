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

func TestBegin(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		h := serve(t, secure, nil)
		a := h.press(t, "", nil)
		require.Equal(t, http.StatusSeeOther, a.StatusCode, a.body)
		require.Equal(t, providerURL, a.Header.Get("Location"))
		require.Empty(t, a.body)
		requireHeaders(t, a)
		require.Equal(t, 1, h.begun)
		cookie := a.Header.Get("Set-Cookie")
		if secure {
			require.Equal(t, "__Host-tarry-flow-1=SECRETCOOKIE; Path=/; Max-Age=900; HttpOnly; Secure; SameSite=Lax", cookie)
		} else {
			require.Equal(t, "tarry-flow-1=SECRETCOOKIE; Path=/; Max-Age=900; HttpOnly; SameSite=Lax", cookie)
		}

		a = h.get(t, "/oauth/callback/"+digest+"?state=SECRETs&code=SECRETc&iss=https%3A%2F%2Fprovider.example")
		requirePage(t, a, http.StatusOK, "Connected")
		require.Contains(t, a.body, "You can close this window.")
		require.Contains(t, a.body, `role="status"`)
		require.Equal(t, "SECRETCOOKIE", h.cookie.Reveal())
		require.Equal(t, "SECRETs", h.callback.State.Reveal())
		require.Equal(t, "SECRETc", h.callback.Code.Reveal())
		require.Equal(t, digest, h.callback.Digest)
		require.True(t, h.callback.IssPresent)
		require.Equal(t, "https://provider.example", h.callback.Iss)
		require.Empty(t, a.Cookies(), "the flow's cookie stays, for a reload")
		h.requireSilentLogs(t)
	}
}

// A denial later is about what the page showed, so that the form says what that was.
func TestFormSaysWhatThePageShowed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(url.Values, *http.Request)
		want   string
	}{
		"the page's":      {nil, "adk-r9"},
		"earlier version": {func(f url.Values, _ *http.Request) { f.Del("shown") }, ""},
		"twice":           {func(f url.Values, _ *http.Request) { f.Add("shown", "adk-r1") }, ""},
		"too long":        {func(f url.Values, _ *http.Request) { f.Set("shown", strings.Repeat("x", 129)) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			h.page.Shown = "adk-r9"
			require.Equal(t, http.StatusSeeOther, h.press(t, "", tc.change).StatusCode)
			require.Equal(t, tc.want, h.shown)
		})
	}
}

func TestBeginRefusesForgedForms(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		change func(url.Values, *http.Request)
	}{
		{"no token", func(f url.Values, _ *http.Request) { f.Del("csrf") }},
		{"wrong token", func(f url.Values, _ *http.Request) { f.Set("csrf", "x"+f.Get("csrf")) }},
		{"token twice", func(f url.Values, _ *http.Request) { f.Add("csrf", f.Get("csrf")) }},
		{"another request", func(f url.Values, _ *http.Request) { f.Set("request", "adk-r2") }},
		{"no request", func(f url.Values, _ *http.Request) { f.Del("request") }},
		{"token in the query only", func(f url.Values, r *http.Request) {
			r.URL.RawQuery = f.Encode()
			f.Del("csrf")
		}},
		{"planted second cookie", func(_ url.Values, r *http.Request) { r.Header.Set("Cookie", "tarry-csrf=AAAAAAAAAAAAAAAAAAAAAAAAAA") }},
		{"JSON", func(_ url.Values, r *http.Request) { r.Header.Set("Content-Type", "application/json") }},
		{"multipart", func(_ url.Values, r *http.Request) { r.Header.Set("Content-Type", "multipart/form-data; boundary=x") }},
		{"large", func(f url.Values, _ *http.Request) { f.Set("more", strings.Repeat("x", 20<<10)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			a := h.press(t, "", tc.change)
			requirePage(t, a, http.StatusForbidden, "Page out of date")
			require.Zero(t, h.begun)
			require.Empty(t, a.Cookies())
		})
	}
	t.Run("no cookie", func(t *testing.T) {
		t.Parallel()
		h := serve(t, false, nil)
		a := h.press(t, "", func(url.Values, *http.Request) { h.client.Jar = nil })
		requirePage(t, a, http.StatusForbidden, "Page out of date")
		require.Zero(t, h.begun)
	})
	t.Run("other host name", func(t *testing.T) {
		t.Parallel()
		h := serve(t, false, nil)
		a := h.press(t, "", func(_ url.Values, r *http.Request) { r.Host = strings.Replace(r.Host, "127.0.0.1", "localhost", 1) })
		requirePage(t, a, http.StatusForbidden, "Page out of date")
		require.Zero(t, h.begun)
	})
	for name, site := range map[string][2]string{
		"other site": {"https://evil.example", "cross-site"}, "other port": {"http://127.0.0.1:1", "same-site"}, "sandboxed frame": {"null", "cross-site"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			a := h.press(t, "", func(_ url.Values, r *http.Request) {
				r.Header.Set("Origin", site[0])
				r.Header.Set("Sec-Fetch-Site", site[1])
			})
			require.Equal(t, http.StatusForbidden, a.StatusCode)
			require.Zero(t, h.begun)
		})
	}
}

func TestBeginOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		err     error
		started func(*connect.Started)
		status  int
		title   string
		again   bool
	}{
		{"unknown", connect.ErrUnknown, nil, 404, "Link not found", false},
		{"expired", connect.ErrExpired, nil, 410, "Login expired", false},
		{"cancelled", connect.ErrCancelled, nil, 410, "Request cancelled", false},
		{"wrong user", connect.ErrWrongUser, nil, 403, "Not your request", false},
		{"too many", connect.ErrTooMany, nil, 429, "Too many attempts", true},
		{"provider", connect.ErrProvider, nil, 502, "The provider refused", true},
		{"misconfigured", connect.ErrMisconfigured, nil, 500, "Set-up problem", false},
		{"try again", connect.ErrTryAgain, nil, 500, "Try again", true},
		{"other", http.ErrHijacked, nil, 500, "Something went wrong", true},
		{"script address", nil, func(s *connect.Started) { s.RedirectURL = "javascript:alert(1)//SECRET" }, 500, "Set-up problem", false},
		{"no host", nil, func(s *connect.Started) { s.RedirectURL = "https:///x" }, 500, "Set-up problem", false},
		{"over already", nil, func(s *connect.Started) { s.Expires = time.Now().Add(-time.Hour) }, 500, "Try again", true},
		{"bad cookie", nil, func(s *connect.Started) { s.CookieName = "a b" }, 500, "Try again", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			h.beginErr = tc.err
			if tc.started != nil {
				tc.started(&h.started)
			}
			a := h.press(t, "", nil)
			requirePage(t, a, tc.status, tc.title)
			require.Equal(t, tc.again, strings.Contains(a.body, h.url+"/connect?request=adk-r1"))
			require.Equal(t, tc.status == 429, a.Header.Get("Retry-After") != "")
			h.requireSilentLogs(t)
		})
	}
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.beginErr = connect.ErrFinished
	back := "&redirect_uri=" + url.QueryEscape(returnURL)
	require.Equal(t, h.url+"/connect?request=adk-r1"+back, h.press(t, back, nil).Header.Get("Location"))
	a := h.press(t, "", nil)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	require.Equal(t, h.url+"/connect?request=adk-r1", a.Header.Get("Location"), "the page says how it ended")
}

// A server that names another provider by now: the page comes again, says so, and nobody has been sent anywhere.
func TestBeginAtAProviderThatMoved(t *testing.T) {
	t.Parallel()
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.beginErr = connect.ErrMoved
	back := "&redirect_uri=" + url.QueryEscape(returnURL)
	a := h.press(t, back, nil)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	require.Equal(t, h.url+"/connect?request=adk-r1&moved=1"+back, a.Header.Get("Location"))
	require.Empty(t, a.Cookies())
	require.Contains(t, h.get(t, "/connect?request=adk-r1&moved=1").body, "another place to log in")
	require.NotContains(t, h.get(t, "/connect?request=adk-r1").body, "another place to log in")
}

// Another window has moved the login meanwhile; this one has shown the old provider only.
func TestProviderThatThePageDidNotShow(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	page := h.get(t, "/connect?request=adk-r1")
	form := url.Values{"request": {"adk-r1"}, "csrf": {page.field("csrf")}, "provider": {page.field("provider")}}
	h.page.ProviderHost = "evil.example"
	a := h.post(t, "/connect", form, nil)
	require.Equal(t, http.StatusSeeOther, a.StatusCode)
	require.Equal(t, h.url+"/connect?request=adk-r1&moved=1", a.Header.Get("Location"))
	require.Zero(t, h.begun)
	form.Set("provider", h.get(t, "/connect?request=adk-r1&moved=1").field("provider"))
	require.Equal(t, providerURL, h.post(t, "/connect", form, nil).Header.Get("Location"))
}

func TestCallbackOutcomes(t *testing.T) {
	t.Parallel()
	open := connect.Result{Outcome: auth.StatusPending, RequestID: "adk-r1"}
	nothing := connect.Result{}
	done := func(s auth.Status) connect.Result {
		return connect.Result{Outcome: s, RequestID: "adk-r1", App: "planner"}
	}
	for _, tc := range []struct {
		name   string
		result connect.Result
		err    error
		status int
		title  string
		again  bool
	}{
		{"granted", done(auth.StatusGranted), nil, 200, "Connected", false},
		{"denied", done(auth.StatusDenied), nil, 200, "Declined", false},
		{"expired meanwhile", done(auth.StatusExpired), nil, 410, "Request expired", false},
		{"cancelled meanwhile", done(auth.StatusCancelled), nil, 410, "Request cancelled", false},
		{"still exchanging", done(auth.StatusExchanging), nil, 200, "Login in progress", true},
		{"answered twice", done(auth.StatusGranted), connect.ErrFinished, 200, "Already connected", false},
		{"declined twice", done(auth.StatusDenied), connect.ErrFinished, 200, "Already declined", false},
		{"finished somehow", nothing, connect.ErrFinished, 410, "Already answered", false},
		{"unknown state", nothing, connect.ErrUnknown, 400, "Login not recognised", false},
		{"wrong browser", nothing, connect.ErrWrongBrowser, 403, "Begun in another browser", false},
		{"wrong user", nothing, connect.ErrWrongUser, 403, "Not your request", false},
		{"flow expired, request open", open, connect.ErrExpired, 410, "Login expired", true},
		{"request expired", done(auth.StatusExpired), connect.ErrExpired, 410, "Login expired", false},
		{"cancelled", done(auth.StatusCancelled), connect.ErrCancelled, 410, "Request cancelled", false},
		{"provider", open, connect.ErrProvider, 502, "The provider refused", true},
		{"too many", open, connect.ErrTooMany, 429, "Too many attempts", true},
		{"misconfigured", open, &connect.MisconfiguredError{Text: "The client secret is missing."}, 500, "Set-up problem", false},
		{"try again", open, connect.ErrTryAgain, 500, "Try again", true},
		{"other", nothing, http.ErrHijacked, 500, "Something went wrong", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := serve(t, false, nil)
			h.result, h.resultErr = tc.result, tc.err
			a := h.get(t, "/oauth/callback/"+digest+"?state=SECRETs&code=SECRETc")
			requirePage(t, a, tc.status, tc.title)
			require.Equal(t, tc.again, strings.Contains(a.body, h.url+"/connect?request=adk-r1"))
			require.Equal(t, tc.status >= 400, strings.Contains(a.body, a.Header.Get("X-Request-Id")))
			require.Empty(t, a.Cookies())
			h.requireSilentLogs(t)
		})
	}
}

func TestCallbackParameters(t *testing.T) {
	t.Parallel()
	h := serve(t, false, nil)
	h.resultErr = connect.ErrProvider
	for problem, want := range map[string]string{
		"access_denied":             "access_denied",
		"temporarily_unavailable":   "temporarily_unavailable",
		"<script>SECRET</script>":   "other",
		"access_denied\nSECRET":     "other",
		strings.Repeat("SECRET", 9): "other",
	} {
		a := h.get(t, "/oauth/callback/"+digest+"?state=s&error="+url.QueryEscape(problem)+
			"&error_description="+url.QueryEscape("<script>alert('SECRET')</script>")+"&error_uri=javascript:SECRET")
		requirePage(t, a, http.StatusBadGateway, "The provider refused")
		require.Equal(t, want, h.callback.Error)
		require.True(t, h.callback.Code.IsZero())
		require.False(t, h.callback.IssPresent)
	}
	completed := h.completed
	for name, path := range map[string]string{
		"no parameters":  digest,
		"no state":       digest + "?code=SECRET",
		"no answer":      digest + "?state=SECRET",
		"both":           digest + "?state=s&code=SECRET&error=access_denied",
		"state twice":    digest + "?state=s&state=SECRET&code=c",
		"code twice":     digest + "?state=s&code=c&code=SECRET",
		"error twice":    digest + "?state=s&error=access_denied&error=SECRET",
		"iss twice":      digest + "?state=s&code=c&iss=a&iss=b",
		"bad encoding":   digest + "?state=s&code=c&x=%zz",
		"long state":     digest + "?code=c&state=" + strings.Repeat("x", 600),
		"long code":      digest + "?state=s&code=" + strings.Repeat("x", 9000),
		"foreign digest": "SECRET?state=s&code=c",
		"long digest":    strings.Repeat("a", 65) + "?state=s&code=c",
	} {
		a := h.get(t, "/oauth/callback/"+path)
		require.Equal(t, http.StatusBadRequest, a.StatusCode, name)
		require.Equal(t, "Login not recognised", a.title(), name)
		require.NotContains(t, a.body, "SECRET")
	}
	require.Equal(t, completed, h.completed)
	require.NotContains(t, strings.ReplaceAll(h.logs.String(), "/oauth/callback/SECRET", ""), "SECRET")
}

func TestUnknownStatesAreLimited(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	peer := "a"
	h := serve(t, false, func(c *connect.Config) {
		c.Now = func() time.Time { return now }
		c.Peer = func(*http.Request) string { return peer }
	})
	good := "/oauth/callback/" + digest + "?state=s&code=c"
	for range 50 {
		require.Equal(t, http.StatusOK, h.get(t, good).StatusCode, "good answers are free")
	}
	h.resultErr = connect.ErrUnknown
	for range 20 {
		require.Equal(t, http.StatusBadRequest, h.get(t, good).StatusCode)
	}
	completed := h.completed
	a := h.get(t, good)
	requirePage(t, a, http.StatusTooManyRequests, "Too many attempts")
	require.Equal(t, completed, h.completed, "nothing is looked up")
	a = h.do(t, http.MethodGet, good, func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "flow", Value: "v"}) }) //nolint:gosec // a request's cookie has no attributes
	require.Equal(t, http.StatusBadRequest, a.StatusCode, "what may be a login is looked up")
	require.Equal(t, completed+1, h.completed)
	peer = "b"
	require.Equal(t, http.StatusBadRequest, h.get(t, good).StatusCode, "other peers are not concerned")
	peer = "a"
	now = now.Add(4 * time.Second)
	require.Equal(t, http.StatusBadRequest, h.get(t, good).StatusCode)
	require.Equal(t, http.StatusTooManyRequests, h.get(t, good).StatusCode)
}

func TestReturn(t *testing.T) {
	t.Parallel()
	listed := func(c *connect.Config) { c.ReturnTo = []string{returnURL, "https://ui.example/back?keep=1"} }
	for _, outcome := range []auth.Status{auth.StatusGranted, auth.StatusDenied} {
		h := serve(t, false, listed)
		h.result.Outcome = outcome
		a := h.press(t, "&state=C&redirect_uri="+url.QueryEscape(returnURL), nil)
		require.Equal(t, http.StatusSeeOther, a.StatusCode)
		require.Equal(t, providerURL, a.Header.Get("Location"))
		require.Len(t, a.Cookies(), 2)
		a = h.get(t, "/oauth/callback/"+digest+"?state=SECRETs&code=SECRETc")
		require.Equal(t, http.StatusSeeOther, a.StatusCode)
		requireReturned(t, a)
		require.NotContains(t, a.Header.Get("Location"), "SECRET")
		requirePage(t, h.get(t, "/oauth/callback/"+digest+"?state=s&code=c"), 200, map[auth.Status]string{
			auth.StatusGranted: "Connected", auth.StatusDenied: "Declined",
		}[outcome])
		h.requireSilentLogs(t)
	}

	h := serve(t, false, listed)
	h.press(t, "&redirect_uri="+url.QueryEscape(returnURL), nil)
	h.result.Outcome, h.resultErr = auth.StatusPending, connect.ErrProvider
	requirePage(t, h.get(t, "/oauth/callback/"+digest+"?state=s&code=c"), 502, "The provider refused")
	h.result.Outcome, h.resultErr = auth.StatusGranted, nil
	requireReturned(t, h.get(t, "/oauth/callback/"+digest+"?state=s&code=c"))

	h.page.Status = auth.StatusGranted
	a := h.get(t, "/connect?request=adk-r1&redirect_uri="+url.QueryEscape("https://ui.example/back?keep=1"))
	require.Regexp(t, `^https://ui\.example/back\?code=tarry-ticket-[a-z2-7]{26}&keep=1&state=corr$`, a.Header.Get("Location"))
}

func TestNoOpenRedirect(t *testing.T) {
	t.Parallel()
	for _, target := range []string{
		"https://evil.example", "//evil.example", returnURL + "x", returnURL + "?a=b", returnURL + "#", strings.ToUpper(returnURL),
		"http://localhost:8080@evil.example/dev-ui/", "http://localhost:8080/dev-ui", "javascript:alert(1)",
		"http://localhost:8080/dev-ui/%2e%2e", returnURL + "\n",
	} {
		h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
		more := "&redirect_uri=" + url.QueryEscape(target)
		require.NotContains(t, h.get(t, "/connect?request=adk-r1"+more).body, "redirect_uri")
		a := h.press(t, more, func(f url.Values, _ *http.Request) { f.Set("redirect_uri", target) })
		require.Equal(t, providerURL, a.Header.Get("Location"))
		require.Len(t, a.Cookies(), 1)
		requirePage(t, h.get(t, "/oauth/callback/"+digest+"?state=s&code=c"+more), 200, "Connected")
		h.page.Status = auth.StatusGranted
		requirePage(t, h.get(t, "/connect?request=adk-r1"+more), 200, "Already connected")
	}
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.page.Status = auth.StatusGranted
	twice := "&redirect_uri=" + url.QueryEscape(returnURL)
	requirePage(t, h.get(t, "/connect?request=adk-r1"+twice+twice), 200, "Already connected")
	h = serve(t, false, nil)
	h.page.Status = auth.StatusGranted
	requirePage(t, h.get(t, "/connect?request=adk-r1"+twice), 200, "Already connected")
}

func TestPlantedReturnCookie(t *testing.T) {
	t.Parallel()
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.press(t, "&redirect_uri="+url.QueryEscape(returnURL), nil)
	u, err := url.Parse(h.url)
	require.NoError(t, err)
	for _, cookie := range h.client.Jar.Cookies(u) {
		if strings.HasPrefix(cookie.Name, "tarry-return-") {
			cookie.Value = "aHR0cHM6Ly9ldmlsLmV4YW1wbGU" // https://evil.example
			cookie.Path = "/"
			h.client.Jar.SetCookies(u, []*http.Cookie{cookie})
		}
	}
	requirePage(t, h.get(t, "/oauth/callback/"+digest+"?state=s&code=c"), 200, "Connected")
}

func TestTickets(t *testing.T) {
	t.Parallel()
	ticket := connect.NewTicket()
	require.True(t, connect.IsTicket(ticket))
	require.NotEqual(t, ticket, connect.NewTicket())
	for _, code := range []string{"", "4/0AbCd", "tarry-ticket-", "tarry-ticket-" + strings.Repeat("1", 26), connect.NewTicket() + "a"} {
		require.False(t, connect.IsTicket(code), code)
	}
}
