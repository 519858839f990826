package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// twoProviders is a world whose agents use servers of two login providers: "assistant" both in one turn, "team" by two agents
// side by side. The tools of the second have the prefix "other".
func twoProviders(t *testing.T) (*world, *demo.Provider) {
	t.Helper()
	other, err := demo.NewProvider(demo.ProviderConfig{Name: "Other ID"})
	require.NoError(t, err)
	require.NoError(t, other.Start(""))
	t.Cleanup(func() { require.NoError(t, other.Close()) })
	server, err := demo.NewMCPServer(demo.MCPConfig{Provider: other})
	require.NoError(t, err)
	server.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = true })
	require.NoError(t, server.Start(""))
	t.Cleanup(func() { require.NoError(t, server.Close()) })

	o := single(call("list_tickets", "other_list_tickets") + text("Both are there."))
	second := "  - name: McpToolset\n    args:\n      tool_name_prefix: other\n      streamable_http_connection_params:\n        url: " + server.URL() + "\n"
	o.agents["assistant/root_agent.yaml"] += second
	o.agents["team/root_agent.yaml"] = "agent_class: ParallelAgent\nname: team\nsub_agents:\n  - config_path: one.yaml\n  - config_path: two.yaml\n"
	o.agents["team/one.yaml"] = strings.Replace(assistant(""), "name: assistant", "name: one", 1)
	o.agents["team/two.yaml"] = "name: two\nmodel: ${var:MODEL}\ninstruction: Help.\ntools:\n" + second
	o.script += "  - agent: one\n    steps:\n" + indent(call("list_tickets")+text("One is there."), "      ") +
		"  - agent: two\n    steps:\n" + indent(call("other_list_tickets")+text("Two is there."), "      ")
	o.env = append(o.env, "TARRY_RETURN_URLS="+popupBack)
	return newWorld(t, o), other
}

// Two requests wait in one session, of one agent or of two side by side. Whichever is answered first, by a reply or by a login
// alone: its call goes on at once, the other waits, and in the end nothing is lost and nothing came twice (P8).
func TestADKTwoRequests(t *testing.T) {
	t.Parallel()
	w, other := twoProviders(t)
	sessions := 0
	for _, app := range []string{"assistant", "team"} {
		for _, means := range []string{"replies", "logins", "a reply to the wrong one", "one reply to both"} {
			for _, first := range []string{"list_tickets", "other_list_tickets"} {
				name := app + ", " + means + ", " + first + " first"
				sessions++
				s := w.adkSessionOf(app, fmt.Sprint("user", sessions))
				events := s.say("Go.")
				both := s.requested(events)
				require.Len(t, both, 2, name)
				tool := map[string]loginCall{}
				for _, f := range both {
					scheme := f.Args["authConfig"].(map[string]any)["authScheme"].(map[string]any)
					used := "list_tickets"
					if strings.HasPrefix(scheme["flows"].(map[string]any)["authorizationCode"].(map[string]any)["tokenUrl"].(string), other.URL()) {
						used = "other_list_tickets"
					}
					tool[used] = f
				}
				require.Len(t, tool, 2, name)
				second := map[string]string{"list_tickets": "other_list_tickets", "other_list_tickets": "list_tickets"}[first]
				var got []event
				send := func(parts ...any) []event {
					status, events := s.c.sse(s.body(nil, parts...), false)
					require.Equal(t, http.StatusOK, status, name)
					ids(t, events)
					got = append(got, events...)
					return events
				}
				waits := func() {
					w.eventually(name+": the first call does not go on", func() bool { return len(responses(s.events(), first)) == 1 })
					require.Empty(t, responses(s.events(), second), name)
					w.eventually(name+": the other does not wait", func() bool { return s.status().State == "waiting_credential" })
				}

				address := w.loginBack(tool[first].link(), popupBack)
				switch means {
				case "replies":
					part := send(answering(tool[first], tool[first].filled(address)))
					require.Len(t, responses(part, first), 1, name)
					got = nil
					waits()
				case "a reply to the wrong one": // changes nothing, and brings what there is
					send(answering(tool[second], "done"))
					waits()
				default:
					waits()
				}
				next := w.loginBack(tool[second].link(), popupBack)
				switch means {
				case "replies":
					send(answering(tool[second], tool[second].filled(next)))
				case "one reply to both":
					send(answering(tool[first], tool[first].filled(address)), answering(tool[second], tool[second].filled(next)))
				}
				require.Equal(t, "done", w.finished(s.runHandle).InvocationStatus, name)
				all := s.events()
				ids(t, all)
				w.checkAnswers(all, name)
				require.Len(t, s.requested(all), 2, name)
				require.Len(t, responses(all, first), 1, name)
				require.Len(t, responses(all, second), 1, name)
				if means == "replies" { // a later stream may have what an earlier one had: it begins behind its own question
					seen := append(ids(t, events), ids(t, got)...)
					for _, e := range all[1:] {
						require.Contains(t, seen, e.ID, "%s: no stream has shown %s", name, e.ID)
					}
				}
			}
		}
	}
	for _, p := range []*demo.Provider{w.provider, other} {
		require.Equal(t, sessions, p.Counts().Token["authorization_code"])
		require.Equal(t, sessions, p.Counts().TokenOK["authorization_code"])
	}
	require.Len(t, w.mcp.Calls("list_tickets"), sessions)
}
