//go:build adkweb

package adkweb_test

import "github.com/stretchr/testify/require"

// tabs are stories with two windows, or one that comes back.
func tabs() []scenario {
	var second, popup *tab
	var first string
	return []scenario{
		{"two tabs", []step{
			opens("tabs", "planner"), sends(wish), asked(),
			{"a second tab opens the session, and asks for the same login", func(p *play) {
				second = p.main.another()
				second.open(p.main.address())
				second.sees("adk_request_credential")
				popup = second.opened()
				popup.sees("An agent waits for your login.")
			}},
			{"the person logs in from the first tab", func(p *play) {
				p.popup.decides("approve")
				p.popup.gone()
			}},
			finishes(),
			{"the popup of the second tab is told so and closes, and the tab shows the answer", func(p *play) {
				popup.click("main form button", "Connect")
				popup.gone()
				second.sees(answer)
				p.once()
				require.Equal(p.t, 1, second.rows("app-event-row.bot", answer))
			}},
		}},
		{"rename", []step{
			opens("renamer", "desk"), sends("Hello."), says("You said: Hello."),
			{"the session gets another name", func(p *play) {
				p.main.click("mat-toolbar button", "Hello.")
				p.main.sees("Hello.")
				p.main.click("app-inline-edit button[aria-label=Edit]", "")
				p.main.click("app-inline-edit input", "")
				p.main.replace("Hello. again")
				p.main.click("app-inline-edit button[aria-label=Save]", "")
				p.eventually("the name is not shown", func() bool { return p.main.rows("button", "Hello. again") > 0 })
			}},
			{"it goes on, under its name", func(p *play) {
				p.main.click("button[aria-label='Close session selector']", "")
				p.main.send("Still there?")
				p.main.sees("You said: Still there?")
			}},
			{"another session is begun", func(p *play) {
				first = p.main.session()
				p.main.click("button", "New Session")
				p.main.sees("NEW SESSION")
				p.main.send("Good morning.")
				p.main.sees("You said: Good morning.")
				p.eventually("the UI shows no other session", func() bool { return p.main.session() != "" && p.main.session() != first })
			}},
			{"the first is found by its new name, and reopened", func(p *play) {
				p.main.click("mat-toolbar button", "Good morning.")
				p.main.click(".session-item", "Hello. again")
				p.eventually("the UI does not show the first session", func() bool { return p.main.session() == first })
				p.main.sees("You said: Still there?")
				require.Positive(p.t, p.main.rows("mat-toolbar button", "Hello. again"))
			}},
		}},
	}
}
