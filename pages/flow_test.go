//go:build pages

package pages_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// One login as it is: a link that a person opens who has not signed in, two providers, and back, without a mouse.
func TestLoginByKeyboard(t *testing.T) {
	t.Parallel()
	c, r := start(t), run(t)
	var begun struct{ Session string }
	r.call(t, "POST", "/apps/assistant/users/me/runs", `{"task":"Who am I?"}`, &begun)
	var s status
	ask := func() status {
		var s status
		r.call(t, "GET", "/apps/assistant/users/me/sessions/"+begun.Session+"/status", "", &s)
		return s
	}
	require.Eventually(t, func() bool { s = ask(); return len(s.WaitingFor) == 1 }, patience, 50*time.Millisecond)

	b := c.tab(t)
	b.size(320, 640)
	title := func(want string) {
		t.Helper()
		require.Contains(t, eval[string](b, "document.title"), want)
		require.Empty(t, b.complaints(), want)
	}
	signIn := func() {
		t.Helper()
		b.tabTo("input[name=username]")
		b.press("alice")
		b.tabTo("input[name=password]")
		b.press("alice-password")
		b.enter()
		title("Allow access?")
		b.tabTo("button[value=approve]")
		b.enter()
	}
	b.open(s.WaitingFor[0].Link)
	title("Sign in · Company ID")
	signIn()
	title("Connect to")
	require.Equal(t, s.WaitingFor[0].Link, eval[string](b, "location.href"))
	b.look("flow-link")
	b.tabTo("main form button")
	b.enter()
	title("Sign in · Ticket Desk")
	signIn()
	title("Connected")
	b.look("flow-connected")
	require.Eventually(t, func() bool { s = ask(); return s.Answer != "" }, patience, 50*time.Millisecond)
	require.Equal(t, "alice", s.Answer)

	b.open(r.URL() + "/accounts")
	title("Connected accounts")
	b.look("flow-accounts")
	b.open(r.URL() + "/signin")
	title("Signed in")
	b.look("flow-signed-in")
	b.tabTo("main form button")
	b.enter()
	title("Signed out")
}
