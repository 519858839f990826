//go:build adkweb

package adkweb_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// patience is longer than anything takes on a machine that is busy.
const patience = time.Minute

// chromium is a running browser.
type chromium struct {
	ctx context.Context
	// shots is the folder of screenshots.
	shots string
}

// start starts Chromium, which ends with the test.
func start(t *testing.T) *chromium {
	t.Helper()
	path, found := demo.Chromium(os.Getenv("TARRY_CHROMIUM"))
	require.True(t, found, "there is no Chromium: install the package chromium, or name one in TARRY_CHROMIUM")
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(2*patience), chromedp.WindowSize(1280, 900),
		// Its sandbox needs what containers and root do not have; it opens pages of these tests alone.
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		// The UI's font lies on a host that a machine of tests may not reach; an answer that never comes would hold pages up.
		chromedp.Flag("host-resolver-rules", "MAP fonts.gstatic.com ~NOTFOUND"),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "start Chromium")
	return &chromium{ctx: ctx, shots: shots(t)}
}

// tab is a window of a browser. Windows that were opened from one share its cookies.
type tab struct {
	*play

	ctx    context.Context
	cancel context.CancelFunc
	id     target.ID

	mu       sync.Mutex
	problems []string // since the last step
	all      []string
	requests []string // to the API
	popups   int      // that the page has opened
}

// profile opens a tab with cookies and storage of its own.
func (c *chromium) profile(p *play) *tab {
	p.t.Helper()
	return p.attach(c.ctx, chromedp.WithNewBrowserContext())
}

// another opens a tab beside b.
func (b *tab) another() *tab {
	b.t.Helper()
	return b.attach(b.ctx)
}

func (p *play) attach(parent context.Context, options ...chromedp.ContextOption) *tab {
	p.t.Helper()
	b := &tab{play: p}
	b.ctx, b.cancel = chromedp.NewContext(parent, append(options, chromedp.WithListener(b.listen))...)
	p.after(b.cancel)
	require.NoError(p.t, chromedp.Do(b.ctx), "open a tab")
	b.mu.Lock()
	b.id = chromedp.FromContext(b.ctx).Target.TargetID
	b.mu.Unlock()
	command(b, log.Enable, cdp.Empty{})
	command(b, network.Enable, network.EnableParams{})
	p.tabs = append(p.tabs, b)
	return b
}

func command[P, R any](b *tab, c cdp.Command[P, R], params P) R {
	b.t.Helper()
	ctx, cancel := within(b.ctx)
	defer cancel()
	result, err := chromedp.Call(ctx, c, params)
	require.NoError(b.t, err)
	return result
}

// listen keeps what the console says, and what the page sends to the API.
func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			b.problems = append(b.problems, strings.TrimSpace(e.Entry.Text+" "+e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			var texts []string
			for _, a := range e.Args {
				text := a.Description
				if text == "" {
					text = string(a.Value)
				}
				texts = append(texts, text)
			}
			b.problems = append(b.problems, "console.error: "+strings.Join(texts, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		b.problems = append(b.problems, text)
	case *target.EventTargetCreated:
		if e.TargetInfo.OpenerID != "" && e.TargetInfo.OpenerID == b.id {
			b.popups++
		}
	case *network.EventRequestWillBeSent:
		path, ours := strings.CutPrefix(e.Request.URL, b.URL())
		if !ours || strings.HasPrefix(path, "/dev-ui/") {
			return
		}
		line := e.Request.Method + " " + path
		for _, part := range e.Request.PostDataEntries {
			line += " " + string(part.Bytes)
		}
		b.requests = append(b.requests, line)
	}
}

// complaints returns the errors of the console since the last time, without those of the network outside.
func (b *tab) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.problems
	b.all, b.problems = append(b.all, out...), nil
	return slices.DeleteFunc(out, func(text string) bool {
		// The font's host is not reached here, and the build lacks a style sheet that its page names.
		return strings.Contains(text, "fonts.gstatic.com") || strings.Contains(text, "prism-dark.css")
	})
}

func (b *tab) open(address string) {
	b.t.Helper()
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.Navigate(address)))
}

func (b *tab) reload() {
	b.t.Helper()
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.Reload()))
}

// eval runs script in the page.
func eval[T any](b *tab, script string) (T, error) {
	ctx, cancel := within(b.ctx)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script))
}

func (b *tab) text() string {
	out, err := eval[string](b, "document.body ? document.body.innerText : ''")
	if err != nil {
		return ""
	}
	return out
}

func (b *tab) address() string {
	out, _ := eval[string](b, "location.href")
	return out
}

// eventually waits until condition holds.
func (p *play) eventually(what string, condition func() bool) {
	p.t.Helper()
	require.Eventually(p.t, condition, patience, 50*time.Millisecond, what)
}

// sees waits until the page shows a text.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.eventually("the page does not show: "+text, func() bool { return strings.Contains(b.text(), text) })
}

// element is JavaScript for the first visible element of a selector that has a text, or null.
func element(selector, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].find(e => e.getClientRects().length > 0 && (e.innerText || e.getAttribute("aria-label") || "").includes(%s))`, quote(selector), quote(text))
}

func quote(s string) string {
	out, _ := json.Marshal(s)
	return string(out)
}

// place finds the middle of the first visible element of a selector that has a text, when it has stopped moving and nothing
// lies over it.
func (b *tab) place(selector, text string) (x, y float64) {
	b.t.Helper()
	var at, before []float64
	b.eventually("there is nothing to press: "+selector+" "+text, func() bool {
		var err error
		before = at
		at, err = eval[[]float64](b, `(() => { const e = `+element(selector, text)+`; if (!e || e.disabled) return [];
			e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect(), x = r.x + r.width / 2, y = r.y + r.height / 2;
			const on = document.elementFromPoint(x, y); return on && (e.contains(on) || on.contains(e)) && on !== document.body ? [x, y] : []; })()`)
		return err == nil && len(at) == 2 && slices.Equal(at, before)
	})
	return at[0], at[1]
}

// click presses it with the mouse.
func (b *tab) click(selector, text string) {
	b.t.Helper()
	x, y := b.place(selector, text)
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.MouseClickXY(x, y)))
}

// hover moves the mouse there.
func (b *tab) hover(selector, text string) {
	b.t.Helper()
	x, y := b.place(selector, text)
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, x, y)))
}

// write puts the cursor into a field and types.
func (b *tab) write(selector, text string) {
	b.t.Helper()
	b.click(selector, "")
	b.press(text)
}

// posted is how many requests of the page hold a text.
func (b *tab) posted(text string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.requests {
		if strings.Contains(r, text) {
			n++
		}
	}
	return n
}

// press presses keys.
func (b *tab) press(keys string) {
	b.t.Helper()
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.KeyEvent(keys)))
}

// replace types over all that stands in the field with the cursor.
func (b *tab) replace(text string) {
	b.t.Helper()
	ctx, cancel := within(b.ctx)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, chromedp.KeyEvent("a", chromedp.KeyModifiers(2)), chromedp.KeyEvent(text)))
}

// focused waits until the cursor is there.
func (b *tab) focused(selector string) {
	b.t.Helper()
	b.eventually("the focus is not on "+selector, func() bool {
		on, err := eval[bool](b, "document.activeElement.matches("+quote(selector)+")")
		return err == nil && on
	})
}
