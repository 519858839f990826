package connect_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/internal/form"
	"tarry/server/connect"
)

func asksInput(t *testing.T) *harness {
	t.Helper()
	h := serve(t, false, func(c *connect.Config) { c.ReturnTo = []string{returnURL} })
	h.page.Input, h.page.ProviderHost = true, ""
	h.page.Inputs = []connect.Input{
		{Message: "Pay <b>now</b>\u202e", URL: "https://xn--pypal-4ve.example/confirm?t=1&u=2", Host: "xn--pypal-4ve.example", Unusual: true},
		{Fields: []form.Field{
			{Name: "field-1-name", Title: "Your name", Kind: "text", Required: true, Value: `"Ann"`},
			{Name: "field-1-ok", Title: "All right?", Kind: "checkbox", Checked: true},
			{Name: "field-1-size", Title: "Size", Kind: "select", Options: []form.Option{{Value: "s", Label: "Small"}, {Value: "m", Label: "Medium", Selected: true}}},
		}},
	}
	h.result = connect.Result{Outcome: auth.StatusGranted, RequestID: "adk-r1", App: "planner", Correlator: "corr", Input: true}
	return h
}

// The person sees the whole address, its host by itself, and a warning where it may deceive; nothing is opened for them.
func TestInputPage(t *testing.T) {
	t.Parallel()
	h := asksInput(t)
	a := h.get(t, "/connect?request=adk-r1")
	requirePage(t, a, http.StatusOK, "mcp.example asks")
	text := html.UnescapeString(a.body)
	for _, want := range []string{
		"<code>https://xn--pypal-4ve.example/confirm?t=1&u=2</code>", `<strong><bdi>xn--pypal-4ve.example</bdi></strong>`, "Punycode",
		`target="_blank" rel="noopener noreferrer"`, `value=""Ann""`, `name="field-1-ok" value="true" checked`, `value="m" selected`,
		"Fill in no passwords", `value="decline" formnovalidate`,
	} {
		require.Contains(t, text, want)
	}
	require.Contains(t, a.body, "Pay &lt;b&gt;now&lt;/b&gt;\uFFFD", "a server's text is text")
	require.NotContains(t, a.body, "<script")
}

// What a host belongs to stands at its end, and an address must not change how it reads.
func TestHostsAreShownWhole(t *testing.T) {
	t.Parallel()
	long := "accounts.bank.example." + strings.Repeat(strings.Repeat("a", 50)+".", 4) + "evil.example"
	h := asksInput(t)
	h.page.ServerHost = long
	h.page.Inputs[0].Host, h.page.Inputs[0].URL = long, "https://"+long+"/\u202egnp.x"
	a := h.get(t, "/connect?request=adk-r1")
	require.GreaterOrEqual(t, strings.Count(a.body, "<bdi>"+long+"</bdi>"), 3)
	require.Contains(t, a.body, "<code>https://"+long+"/\uFFFDgnp.x</code>")

	h.page.Input, h.page.ProviderHost = false, long
	require.Contains(t, h.get(t, "/connect?request=adk-r1").body, "<bdi>"+long+"</bdi>")
}

func answerForm(t *testing.T, a answer, more string) url.Values {
	t.Helper()
	form, err := url.ParseQuery(more)
	require.NoError(t, err)
	if !form.Has("request") {
		form.Set("request", "adk-r1")
	}
	form.Set("csrf", a.field("csrf"))
	return form
}

func TestInputAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		form    string
		decline bool
		status  int
	}{
		"accepted":       {"action=accept&field-1-name=Bo", false, http.StatusOK},
		"declined":       {"action=decline", true, http.StatusOK},
		"sent back":      {"action=accept&redirect_uri=" + url.QueryEscape(returnURL), false, http.StatusSeeOther},
		"not sent there": {"action=accept&redirect_uri=https%3A%2F%2Fevil.example", false, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asksInput(t)
			page := h.get(t, "/connect?request=adk-r1")
			a := h.post(t, "/connect/answer", answerForm(t, page, tc.form), nil)
			require.Equal(t, tc.status, a.StatusCode, a.body)
			require.Len(t, h.answers, 1)
			require.Equal(t, tc.decline, h.answers[0].Decline)
			if tc.status == http.StatusSeeOther {
				require.Contains(t, a.Header.Get("Location"), returnURL+"?code=tarry-ticket-")
			}
			if name == "accepted" {
				require.Equal(t, []string{"Bo"}, h.answers[0].Values("field-1-name"))
			}
			h.requireSilentLogs(t)
		})
	}
}

// A form that does not fit is shown again as it was filled in, and nothing has ended.
func TestInputFormIsShownAgain(t *testing.T) {
	t.Parallel()
	h := asksInput(t)
	page := h.get(t, "/connect?request=adk-r1")
	h.resultErr = &connect.FormError{Text: "Size: is not one of the choices."}
	a := h.post(t, "/connect/answer", answerForm(t, page, "action=accept&field-1-name=Bo&field-1-size=s"), nil)
	requirePage(t, a, http.StatusUnprocessableEntity, "Check your answer: mcp.example asks")
	require.Contains(t, a.body, "Size: is not one of the choices.")
	require.Contains(t, a.body, `value="Bo"`)
	require.Contains(t, a.body, `value="s" selected`)
	require.NotContains(t, a.body, `value="true" checked`)
}

// Another tab was faster: what was wrong here does not matter any more.
func TestWrongFormOfAnAnsweredRequest(t *testing.T) {
	t.Parallel()
	for back, status := range map[string]int{"": http.StatusOK, "&redirect_uri=" + url.QueryEscape(returnURL): http.StatusSeeOther} {
		h := asksInput(t)
		page := h.get(t, "/connect?request=adk-r1")
		h.resultErr, h.page.Status, h.page.Inputs = &connect.FormError{Text: "Size: is needed."}, auth.StatusGranted, nil
		a := h.post(t, "/connect/answer", answerForm(t, page, "action=accept"+back), nil)
		require.Equal(t, status, a.StatusCode)
		if back == "" {
			requirePage(t, a, status, "Already answered")
		}
	}
}

// Only a page that this browser was shown for this request can answer it.
func TestInputNeedsItsForm(t *testing.T) {
	t.Parallel()
	for name, form := range map[string]string{
		"no token": "request=adk-r1&action=accept", "no action": "", "other action": "action=open", "another request": "request=adk-r2&action=accept",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := asksInput(t)
			page := h.get(t, "/connect?request=adk-r1")
			values := answerForm(t, page, form)
			if name == "no token" {
				values.Del("csrf")
			}
			a := h.post(t, "/connect/answer", values, nil)
			requirePage(t, a, http.StatusForbidden, "Page out of date")
			require.Empty(t, h.answers)
		})
	}
}

func TestInputOutcomes(t *testing.T) {
	t.Parallel()
	for status, title := range map[auth.Status]string{
		auth.StatusGranted: "Already answered", auth.StatusDenied: "Declined", auth.StatusExpired: "Request expired", auth.StatusCancelled: "Request cancelled",
	} {
		h := asksInput(t)
		h.page.Status = status
		require.Equal(t, title, h.get(t, "/connect?request=adk-r1").title())
	}
}
