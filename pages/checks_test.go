//go:build pages

package pages_test

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

//go:embed checks.js
var checks string

// sound fails the test if something is wrong with the page as it is shown now.
func (b *tab) sound(what string) {
	b.t.Helper()
	require.Empty(b.t, eval[[]string](b, checks), what)
	require.Empty(b.t, b.complaints(), what)
}

// named fails the test if a screen reader has no name for a control, or not one heading of the first level.
func (b *tab) named(what string) {
	b.t.Helper()
	controls := []string{"button", "link", "textbox", "checkbox", "combobox", "listbox", "spinbutton", "Date", "DateTime"} // no option: the choice of nothing has no name
	headings, mains := 0, 0
	for _, n := range command(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		if n.Ignored {
			continue
		}
		role := said(n.Role)
		switch {
		case role == "main":
			mains++
		case role == "heading":
			require.NotEmpty(b.t, said(n.Name), "%s: heading", what)
			for _, p := range n.Properties {
				if p.Name == "level" && string(p.Value.Value) == "1" {
					headings++
				}
			}
		case slices.Contains(controls, role):
			require.NotEmpty(b.t, said(n.Name), "%s: %s", what, role)
		}
	}
	require.Equal(b.t, "1 1", fmt.Sprint(headings, " ", mains), "%s: headings of the first level, and main", what)
}

func said(v *accessibility.Value) (text string) {
	if v == nil || json.Unmarshal(v.Value, &text) != nil {
		return ""
	}
	return text
}

func (b *tab) press(keys string) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, chromedp.KeyEvent(keys)))
}

// reachable are the controls of a page in its order.
const reachable = `[...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea")]`

// where is the focus: the number of the control, or -1; and whether it can be seen.
type where struct {
	Control int
	Seen    bool
}

func (b *tab) focus() where {
	b.t.Helper()
	return eval[where](b, `(() => { const e = document.activeElement, s = getComputedStyle(e);
		return {Control: `+reachable+`.indexOf(e), Seen: s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 2}; })()`)
}

// tabbed fails the test if Tab does not go from control to control in the page's order, each seen to have the focus.
func (b *tab) tabbed(what string) {
	b.t.Helper()
	all := eval[int](b, reachable+".length")
	var order []int
	for range 8 * (all + 1) { // a date has a stop for each of its parts
		if len(order) == all {
			break
		}
		b.press(kb.Tab)
		at := b.focus()
		if at.Control < 0 || len(order) > 0 && order[len(order)-1] == at.Control {
			continue
		}
		require.True(b.t, at.Seen, "%s: the focus of control %d is not seen", what, at.Control)
		order = append(order, at.Control)
	}
	for i := range all {
		require.Equal(b.t, i, append(order, -1)[min(i, len(order))], "%s: Tab goes %v", what, order)
	}
}

// tabTo presses Tab until the focus is on what the selector names.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	script := fmt.Sprintf("document.activeElement.matches(%q)", selector)
	for range 60 {
		if eval[bool](b, script) {
			return
		}
		b.press(kb.Tab)
	}
	require.Fail(b.t, "Tab does not reach "+selector)
}
