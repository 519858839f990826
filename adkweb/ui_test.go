//go:build adkweb

package adkweb_test

import (
	"net/url"
	"slices"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// send types a message and sends it.
func (b *tab) send(text string) {
	b.t.Helper()
	b.write(".chat-input-box", text)
	b.click(".send-message-btn", "")
	b.eventually("the message is not shown", func() bool { return b.rows("app-event-row.user", text) > 0 })
}

// rows is how many elements have a text.
func (b *tab) rows(selector, text string) int {
	n, err := eval[int](b, `[...document.querySelectorAll(`+quote(selector)+`)].filter(e => e.innerText.includes(`+quote(text)+`)).length`)
	if err != nil {
		return -1
	}
	return n
}

// session is the id in the address of a window of the UI.
func (b *tab) session() string {
	u, err := url.Parse(b.address())
	if err != nil {
		return ""
	}
	return u.Query().Get("session")
}

// opened waits for the window that b has opened.
func (b *tab) opened() *tab {
	b.t.Helper()
	var id target.ID
	b.eventually("no popup opens", func() bool {
		all, err := chromedp.Targets(b.ctx)
		for _, i := range all {
			if err == nil && i.OpenerID == b.id && !i.Attached {
				id = i.TargetID
			}
		}
		return id != ""
	})
	return b.attach(b.ctx, chromedp.WithTargetID(id))
}

// open says whether the window is there.
func (b *tab) isOpen() bool {
	all, err := chromedp.Targets(b.main.ctx)
	return err != nil || slices.ContainsFunc(all, func(i *target.Info) bool { return i.TargetID == b.id })
}

// closesByItself waits until the page has opened a popup since there were some, and none is open any more.
func (b *tab) closesByItself(since int) {
	b.t.Helper()
	b.eventually("no popup opens", func() bool { return b.opening() > since })
	b.eventually("the popup does not close", func() bool {
		all, err := chromedp.Targets(b.ctx)
		return err == nil && !slices.ContainsFunc(all, func(i *target.Info) bool { return i.OpenerID == b.id })
	})
}

func (b *tab) opening() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.popups
}

// gone waits until a popup has closed itself.
func (b *tab) gone() {
	b.t.Helper()
	b.eventually("the popup does not close", func() bool { return !b.isOpen() })
	b.forget()
}

// close shuts the window as a person does.
func (b *tab) close() {
	b.t.Helper()
	require.NoError(b.t, chromedp.Cancel(b.ctx))
	b.forget()
}

// forget stops looking at a window.
func (b *tab) forget() {
	b.tabs = slices.DeleteFunc(b.tabs, func(one *tab) bool { return one == b })
}

// decides logs in at the provider in a popup, and says yes or no there.
func (b *tab) decides(decision string) {
	b.t.Helper()
	b.click("main form button", "Connect")
	b.signsIn("alice")
	b.keep(b.file() + "-consent")
	b.click("button[value="+decision+"]", "")
}

// signsIn fills in the provider's form.
func (b *tab) signsIn(name string) {
	b.t.Helper()
	b.sees("asks for access to your account")
	b.write("input[name=username]", name)
	b.write("input[name=password]", name+"-password")
	b.click("button", "Sign in")
	b.sees("Allow access?")
}
