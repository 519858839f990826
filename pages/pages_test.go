//go:build pages

package pages_test

import (
	"net/url"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// addresses are all pages that a link or a redirect leads to, by name.
func addresses(w *world) map[string]string {
	out := map[string]string{
		"accounts":       "/accounts",
		"accounts-none":  "/accounts?after=none",
		"accounts-after": "/accounts?done=untold",
		"device-still":   "/connect?request=device&still=1",
		"signed-in":      "/signin",
		"signin-refused": "/signin/callback?state=x&error=access_denied",
		"link-unknown":   "/connect?request=nobodys",
		"moved":          "/connect?request=ask&moved=1",
		"refused":        "/refused",
	}
	for id := range requests() {
		out[id] = "/connect?" + url.Values{"request": {id}}.Encode()
	}
	for state := range outcomes() {
		out["outcome-"+state] = "/oauth/callback/0123456789abcdef?code=c&state=" + state
	}
	for name, path := range out {
		out[name] = w.url + path
	}
	return out
}

// asAda is a tab of somebody whom the proxy names.
func asAda(t *testing.T, c *chromium) *tab {
	t.Helper()
	b := c.tab(t)
	command(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{personHeader: person}})
	return b
}

// look looks at the page that is open in every way in which people do, and keeps screenshots.
func (b *tab) look(name string) {
	b.t.Helper()
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"desk", 1280, 800}, {"phone", 320, 640}} {
		b.size(size.width, size.height)
		for _, scheme := range []string{"light", "dark"} {
			b.media(&emulation.MediaFeature{Name: "prefers-color-scheme", Value: scheme})
			b.sound(name + " " + size.name + " " + scheme)
			b.shot(name + "-" + size.name + "-" + scheme)
		}
	}
	b.media(&emulation.MediaFeature{Name: "forced-colors", Value: "active"}, &emulation.MediaFeature{Name: "prefers-reduced-motion", Value: "reduce"})
	b.sound(name + ", forced colors")
	b.named(name)
}

func TestPages(t *testing.T) {
	t.Parallel()
	c, w := start(t), serve(t)
	b := asAda(t, c)
	all := addresses(w)
	for _, name := range sorted(all) {
		b.open(all[name])
		b.look(name)
		b.tabbed(name)
		if _, ofRequest := requests()[name]; ofRequest || name == "accounts" || name == "signed-in" {
			require.Contains(t, eval[string](b, "document.body.innerText"), person, name)
		}
	}
	b = c.tab(t)
	b.open(w.url + "/signout")
	b.look("signed-out")
	b.tabbed("signed-out")
}

// A form is filled in and sent by keyboard; what is wrong with it is said where the focus is.
func TestFormsByKeyboard(t *testing.T) {
	t.Parallel()
	c, w := start(t), serve(t)
	b := asAda(t, c)
	for _, form := range []struct{ request, control, first, then, title string }{
		{"inputs", "#field-0-0", "a", "ann", "Thank you"},
		{"question", "#answer", "a", "ann", "Thank you"},
		{"key", "#key", "k", "key", "Saved"},
	} {
		b.open(w.url + "/connect?request=" + form.request)
		b.tabTo(form.control)
		b.press(form.first)
		if form.request == "inputs" {
			b.tabTo("#field-0-1")
			b.press("ann@example.com")
		}
		b.send(form.control)
		title := eval[string](b, "document.title")
		require.Contains(t, title, "Check your answer", form.request)
		// Told at once: the focus is on the control, which is described by what is wrong, or on that text.
		_, err := chromedp.Run(b.ctx, chromedp.Poll[bool](`document.activeElement.matches("#problem, [aria-invalid=true][aria-describedby~=problem]")`))
		require.NoError(t, err, form.request)
		b.look(form.request + "-refused")
		b.tabTo(form.control)
		b.press(form.then)
		if form.request == "key" {
			require.Equal(t, form.then, eval[string](b, `document.querySelector("#key").value`), "no page fills a secret in")
		}
		b.send(form.control)
		require.Equal(t, form.title, eval[string](b, "document.title"), form.request)
	}
	b.open(w.url + "/connect?request=confirm-plain")
	b.tabTo("button[value=decline]")
	b.enter()
	require.Equal(t, "Rejected", eval[string](b, "document.title"))
	b.open(w.url + "/accounts")
	b.tabTo("button[value=revoke]")
	b.enter()
	require.Contains(t, eval[string](b, `document.querySelector("[role=status]").innerText`), "Disconnected")
}

// send presses Enter in the control, or where that begins a line, on the first button.
func (b *tab) send(control string) {
	b.t.Helper()
	b.tabTo(control)
	if eval[bool](b, `document.activeElement.tagName === "TEXTAREA"`) {
		b.tabTo("button[value=accept]")
	}
	b.enter()
}

// enter presses Enter and waits for the page that it leads to.
func (b *tab) enter() {
	b.t.Helper()
	_, err := chromedp.Run(b.ctx, chromedp.WaitEvent(page.LoadEventFired, nil, chromedp.KeyEvent(kb.Enter)))
	require.NoError(b.t, err)
}
