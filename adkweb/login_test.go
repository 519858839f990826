//go:build adkweb

package adkweb_test

import (
	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// logins are the stories around one login.
func logins() []scenario {
	return []scenario{
		{"login", []step{
			{"the server's address leads to the UI", func(p *play) {
				p.user, p.app = "user", "planner"
				p.main = p.profile(p)
				p.main.open(p.URL())
				p.main.sees("Select an agent to begin.")
			}},
			{"the app is picked", func(p *play) {
				p.main.click("button", "Select an app")
				p.main.sees("desk")
				p.main.click(".app-selector-item", "planner")
				p.main.sees("NEW SESSION")
			}},
			sends(wish), asked(), logsIn(), finishes(),
			{"the reopened popup of a reload after the answer closes by itself, and nothing runs again", func(p *play) {
				before, sent, popups := p.provider.Counts(), p.main.posted("/run_sse"), p.main.opening()
				p.main.reload()
				p.main.sees(answer)
				p.main.closesByItself(popups)
				p.eventually("the UI does not answer the old request", func() bool { return p.main.posted("/run_sse") > sent })
				p.once()
				require.Equal(p.t, before, p.provider.Counts(), "the provider was asked again")
			}},
			{"a second message needs no login", func(p *play) {
				p.main.send(wish)
				p.eventually("the second run does not end", func() bool { return p.responses("exit_loop") == 2 })
				require.Equal(p.t, 1, p.calls("adk_request_credential"))
			}},
		}},
		{"denial", []step{
			opens("denier", "planner"), sends(wish), asked(),
			{"the person says no at the provider, and the popup closes", func(p *play) {
				p.popup.decides("deny")
				p.popup.gone()
			}},
			{"the agents hear of it, and the run ends", func(p *play) {
				p.main.sees(denied)
				p.eventually("the run does not end", func() bool { return p.responses("exit_loop") == 1 })
				require.Zero(p.t, p.calls("list_tickets"))
				require.Equal(p.t, 1, p.calls("adk_request_credential"))
			}},
		}},
		{"closed popup", []step{
			opens("closer", "planner"), sends(wish), asked(),
			{"the popup is closed, and the run waits on", func(p *play) {
				p.popup.close()
				require.Equal(p.t, 1, p.calls("adk_request_credential"))
				require.Zero(p.t, p.calls("list_tickets"))
			}},
			{"a word in the box under the question changes nothing", func(p *play) {
				p.main.write(".response-input", "Just go on.\r")
				p.eventually("the UI sends nothing", func() bool { return p.main.posted("Just go on.") == 1 })
				require.Zero(p.t, p.calls("list_tickets"))
			}},
			reloads(), asked(), logsIn(), finishes(),
		}},
		{"reload while waiting", []step{
			opens("reloader", "planner"), sends(wish), asked(), reloads(),
			{"the popup of before is used again, and the login ends it", func(p *play) {
				p.popup.sees("An agent waits for your login.")
				p.popup.decides("approve")
				p.popup.gone()
			}},
			finishes(),
		}},
		{"server restart while waiting", []step{
			opens("server", "planner"), sends(wish), asked(),
			{"the server is killed and started again", func(p *play) {
				p.quiet = "the stream of the killed server ends in an error"
				require.NoError(p.t, p.Kill(stack.Server))
				require.NoError(p.t, p.Start(p.t.Context(), stack.Server))
			}},
			logsIn(), finishes(),
		}},
		{"worker kill while waiting", []step{
			opens("worker", "planner"), sends(wish), asked(),
			{"the worker is killed, and the person logs in meanwhile", func(p *play) {
				require.NoError(p.t, p.Kill(stack.Worker))
				p.popup.decides("approve")
				p.popup.gone()
				require.Zero(p.t, p.calls("list_tickets"))
			}},
			{"a worker starts", func(p *play) { require.NoError(p.t, p.Start(p.t.Context(), stack.Worker)) }},
			finishes(),
		}},
	}
}

// reloads is what people do who do not know further.
func reloads() step {
	return step{"the page is reloaded, and the question is still there", func(p *play) {
		p.main.reload()
		p.main.sees("adk_request_credential")
		p.main.sees(wish)
	}}
}
