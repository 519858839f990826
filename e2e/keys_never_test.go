package e2e_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// A server that takes no key, whatever a person types: the run asks three times, waits for each answer, and goes on without the
// tools. No question stays open that nobody waits for.
func TestServerThatTakesNoKey(t *testing.T) {
	t.Parallel()
	server := keyServer(t, demo.KeyConfig{In: "header", Name: "X-Api-Key"})
	server.Accept("ann", demo.DefaultMark+"the-key-that-nobody-has")
	w := newWorld(t, options{
		agents: map[string]string{"typed/root_agent.yaml": keyAgent("typed", server.URL(), "{type: apiKey, in: header, name: X-Api-Key}", "")},
		script: "agents:\n  - agent: typed\n    steps:\n" + indent(text("no tools"), "      "),
	})
	r := w.api.start("typed", "Who am I?")
	request := ""
	for i := range 3 {
		var link string
		request, link = w.asksAgain(r, request)
		w.give(link, "ann", fmt.Sprint(demo.DefaultMark, "wrong-", i))
	}
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "no tools", s.Answer)
	require.Equal(t, []string{"granted", "granted", "granted"}, w.query(`SELECT status FROM requests ORDER BY seq`))
}
