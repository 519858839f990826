//go:build adkweb

package adkweb_test

import (
	"time"

	"github.com/stretchr/testify/require"
)

func says(text string) step {
	return step{"the answer is there: " + text, func(p *play) {
		p.main.sees(text)
		require.Equal(p.t, 1, p.main.rows("app-event-row.bot", text))
	}}
}

// asks are stories in which somebody is asked something else than to log in.
func asks() []scenario {
	return []scenario{
		{"confirmation", []step{
			opens("approver", "desk"), sends("Book me a room."),
			{"the UI asks whether the tool may run, and it does not", func(p *play) {
				p.main.sees("adk_request_confirmation")
				p.main.sees("Confirmed")
				require.Zero(p.t, p.rooms.booked.Load())
			}},
			{"the person approves", func(p *play) {
				p.main.click("app-long-running-response input[type=checkbox]", "")
				p.main.click("app-long-running-response button", "Submit")
			}},
			says("Room Kyoto is yours."),
			{"the tool ran once, also after a reload", func(p *play) {
				p.main.reload()
				p.main.sees("Room Kyoto is yours.")
				require.Equal(p.t, int64(1), p.rooms.booked.Load())
			}},
			{"another room is asked for and not approved", func(p *play) {
				p.main.send("Book me a room, please.")
				p.eventually("the UI asks nothing", func() bool {
					return p.main.rows("app-long-running-response", "Confirmed") == 1 && p.calls("adk_request_confirmation") == 2
				})
				p.main.click("app-long-running-response button", "Submit")
				p.main.sees("No room then.")
				require.Equal(p.t, int64(1), p.rooms.booked.Load())
			}},
		}},
		{"long-running tool", []step{
			opens("orderer", "desk"), sends("Order a chair."),
			{"the UI asks for the result, with what is known so far", func(p *play) {
				p.main.sees("order")
				p.eventually("there is no interim result", func() bool { return p.responses("order") == 1 })
				require.Equal(p.t, 1, p.calls("order"))
			}},
			{"the result is typed in", func(p *play) {
				p.main.hover(".function-response-chip-container", "order")
				p.main.click(".menu-trigger-btn", "")
				p.main.click("button.mat-mdc-menu-item", "")
				p.main.sees("Send Another Response")
				p.main.focused("app-edit-json-dialog button") // the dialog takes the focus when it is open
				p.main.click("app-edit-json-dialog .cm-content", "")
				p.main.focused("app-edit-json-dialog .cm-content")
				p.main.replace(`{"status": "here"}`)
				p.main.keep(p.file() + "-dialog")
				time.Sleep(time.Second) // the editor tells its dialog of changes after a pause, and shows nothing of it
				p.main.click("app-edit-json-dialog button", "Save")
			}},
			says("The chair is here."),
		}},
		{"question", []step{
			opens("traveller", "desk"), sends("I want days off."),
			{"the UI shows the tool's question as a form", func(p *play) {
				p.main.sees("How many days?")
				p.main.sees("Days")
			}},
			{"the form is filled in", func(p *play) {
				p.main.write("app-long-running-response input[type=number]", "3")
				p.main.click("app-long-running-response button", "Submit")
			}},
			says("Days off: 3."),
		}},
		{"streaming", []step{
			opens("streamer", "desk"),
			{"streaming is switched on", func(p *play) {
				p.main.click("button", "more_vert")
				p.main.click("button[mat-menu-item], button.mat-mdc-menu-item", "Streaming")
				p.main.press("\x1b")
			}},
			sends("Write a poem."),
			{"the UI shows its beginning while the rest is not there yet", func(p *play) {
				p.eventually("no piece is shown", func() bool { return p.main.rows("app-event-row", "sleeps") > 0 })
				require.Zero(p.t, p.main.rows("app-event-row", "away a year"))
			}},
			says("away a year"),
			{"the request said so", func(p *play) { require.Equal(p.t, 1, p.main.posted(`"streaming":true`)) }},
		}},
	}
}
