//go:build adkweb

package adkweb_test

import (
	"net/url"

	"github.com/stretchr/testify/require"
)

// What people say and read in these stories.
const (
	wish   = "Plan the next release."
	answer = "REL-104 Audit page, 4 days (waits for REL-103)" // of the second round of the loop
	denied = "I could not look at the tickets, because the login was not allowed."
)

// opens is the UI as somebody opens it who is known by a name of their own: nobody else's logins are theirs.
func opens(user, app string) step {
	return step{"the UI opens with the app " + app, func(p *play) {
		p.user, p.app = user, app
		p.main = p.profile(p)
		p.main.open(p.URL() + "/dev-ui/?" + url.Values{"app": {app}, "userId": {user}}.Encode())
		p.main.sees("NEW SESSION")
	}}
}

func sends(text string) step {
	return step{"a message is sent: " + text, func(p *play) {
		p.main.send(text)
		p.eventually("the UI shows no session", func() bool { return p.main.session() != "" })
	}}
}

// asked is the popup that the UI opens when a login is asked for.
func asked() step {
	return step{"the popup opens and says who asks for what", func(p *play) {
		p.popup = p.main.opened()
		p.popup.sees("An agent waits for your login.")
		require.Contains(p.t, p.popup.text(), p.app)
		require.Contains(p.t, p.popup.text(), p.user)
	}}
}

func logsIn() step {
	return step{"the person logs in at the provider, and the popup closes", func(p *play) {
		p.popup.decides("approve")
		p.popup.gone()
	}}
}

// finishes waits for the loop's end and counts what was done for it: the plan is made twice, once in each round.
func finishes() step {
	return step{"the loop goes on to its answer, and nothing was done twice", (*play).finished}
}

func (p *play) finished() {
	p.t.Helper()
	p.main.sees(answer)
	p.eventually("the run does not end", func() bool { return p.responses("exit_loop") == 1 })
	p.once()
}

// once fails if the job was not done exactly once.
func (p *play) once() {
	p.t.Helper()
	for name, want := range map[string]int{"adk_request_credential": 1, "list_tickets": 1, "create_plan": 2, "exit_loop": 1} {
		require.Equal(p.t, want, p.calls(name), name)
		if name != "adk_request_credential" {
			require.Equal(p.t, want, p.responses(name), name)
		}
	}
	require.Equal(p.t, 1, p.main.rows("app-event-row.bot", answer))
}
