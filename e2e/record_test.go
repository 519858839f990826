package e2e_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/encoding/protojson"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/replay"
	"tarry/wire"
	"tarry/workflows"
)

// go test ./e2e -run TestRecordHistories -update
var update = flag.Bool("update", false, "record the history fixtures anew")

const histories = "../workflows/testdata/histories"

// A scenario is an app of one agent, of the scenario's name, and what happens to its run.
type scenario struct {
	name  string
	more  string // of the agent's file
	tools []string
	steps string
	mode  string
	url   string // of its own server; empty for the one that needs a login
	lazy  bool
	// own are the entries of tools of an agent that has only the test worker's.
	own string
	// guarded: calls wait for approval.
	guarded bool
	act     func(r recording)
}

type recording struct {
	w        *world
	run      runHandle
	temporal client.Client
	agents   workflows.Agents // custom ones
	// elsewhere: the history fits the code of another module, whose tests replay it.
	elsewhere bool
}

func (r recording) login() {
	r.w.loginAs(r.w.waiting(r.run), "alice")
}

func (r recording) workflow() string {
	r.w.t.Helper()
	return r.w.workflowOf(r.run)
}

// runs counts the runs of the chain so far.
func (r recording) runs() int {
	r.w.t.Helper()
	return r.w.chain(r.temporal, r.workflow())
}

// say sends another message.
func (r recording) say(text string) {
	r.w.t.Helper()
	r.run.c.startAs(r.run.user, r.run.app, map[string]string{"task": text, "mode": "chat", "session": r.run.id})
}

// ended lists how the session's invocations stand.
func (r recording) ended() []string {
	r.w.t.Helper()
	return r.w.query(`SELECT status FROM invocations WHERE workflow_id = ? ORDER BY created`, r.workflow())
}

func (r recording) signal(name string, payload any) {
	r.w.t.Helper()
	require.NoError(r.w.t, r.temporal.SignalWorkflow(r.w.t.Context(), r.workflow(), "", name, payload))
}

// scenarios are those of apps that list freely; later ones need a login to list.
func scenarios(curious string) (open, later []scenario) {
	later = []scenario{
		{name: "lazy", lazy: true, steps: call("mcp_connect") + call("list_tickets") + text("Connected."), act: func(r recording) { r.login() }},
	}
	return []scenario{
		{name: "drained", steps: call("list_tickets") + text("Done."), act: func(r recording) {
			r.w.waiting(r.run)
			r.signal(wire.SignalContinueAsNew, nil)
			r.w.eventually("the run does not continue as new", func() bool { return r.runs() == 2 })
			r.login()
		}},
		{name: "input", url: curious, steps: call("survey") + text("Asked."), act: func(r recording) {
			r.w.answer(r.w.waiting(r.run), "accept", map[string]string{"field-0-0": "Bo"})
		}},
		{name: "confirmed", guarded: true, tools: []string{"free"}, steps: call("note {text: hello}") + call("note {text: again}") + text("Noted once."), act: func(r recording) {
			first := r.w.waiting(r.run)
			r.w.answer(first, "accept", nil)
			r.w.eventually("the second call waits", func() bool {
				s := r.run.status()
				return len(s.WaitingFor) == 1 && s.WaitingFor[0].Link != first && s.State == "waiting_confirmation"
			})
			r.w.answer(r.w.waiting(r.run), "decline", nil)
		}},
		{name: "asked", own: "  - name: book\n", steps: call("book") + text("Booked."), act: func(r recording) {
			r.w.answer(r.w.waiting(r.run), "accept", map[string]string{"field-0-0": "3"})
		}},
		{name: "long_running", own: "  - name: LongRunningFunctionTool\n    args: {func: order}\n", steps: call("order") + text("It is there."), act: func(r recording) {
			r.w.waiting(r.run)
			path := r.run.path("/calls/" + r.run.status().WaitingFor[0].Request + "/result")
			require.Equal(r.w.t, 200, r.run.c.call("POST", path, map[string]any{"response": "packed", "interim": true}, nil))
			require.Equal(r.w.t, 200, r.run.c.call("POST", path, map[string]any{"response": "there"}, nil))
		}},
		{name: "granted", steps: call("list_tickets") + text("Four tickets."), act: func(r recording) { r.login() }},
		{name: "denied", steps: call("list_tickets") + text("I may not look."), act: func(r recording) {
			_, err := demo.NewBrowser().Deny(r.w.t.Context(), r.w.waiting(r.run), "alice", "alice-password")
			require.NoError(r.w.t, err)
		}},
		{name: "expired", more: "tarry:\n  credential_deadline: 2s\n", steps: call("list_tickets") + text("Nobody came."), act: func(r recording) {
			r.w.waiting(r.run)
		}},
		{name: "reminded", more: "tarry: {deadline: 4s, on_deadline: fail, remind: 1s}\n", steps: call("list_tickets") + text("never said"), act: func(r recording) {
			r.w.waiting(r.run)
		}},
		{name: "interrupted", more: "tarry: {on_message: interrupt}\n", mode: "chat", steps: call("list_tickets") + "- when: {contains: never mind}\n  text: Never mind.\n", act: func(r recording) {
			r.w.waiting(r.run)
			r.say("Never mind.")
			r.w.eventually("the second message is answered", func() bool { return slices.Equal(r.ended(), []string{"superseded", "done"}) })
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/cancel"), map[string]string{}, nil))
		}},
		{name: "limited", more: "tarry: {limits: {duration: 1h, session: {model_calls: 2, tokens: 1000}}}\n", mode: "chat", steps: call("list_tickets") + text("Four tickets."), act: func(r recording) {
			r.login()
			r.say("And again?")
			r.w.eventually("the second message is answered", func() bool { return slices.Equal(r.ended(), []string{"done", "limit"}) })
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/cancel"), map[string]string{}, nil))
		}},
		{name: "parallel", tools: []string{"free"}, steps: call("note {text: hello}", "list_tickets") + text("Noted and listed."), act: func(r recording) {
			r.login()
		}},
		{name: "shared_login", steps: call("list_tickets", "whoami") + text("Both."), act: func(r recording) { r.login() }},
		{name: "call_cancelled", tools: []string{"free"}, steps: call("note {text: hello}", "list_tickets") + text("Noted only."), act: func(r recording) {
			r.w.waiting(r.run)
			call := callID(r.w.t, r.run.events(), "list_tickets")
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/calls/"+call+"/cancel"), nil, nil))
		}},
		{name: "cancelled", steps: call("list_tickets") + text("never said"), act: func(r recording) {
			r.w.waiting(r.run)
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/cancel"), map[string]string{}, nil))
		}},
		{name: "chat", mode: "chat", steps: call("list_tickets") + text("Four tickets."), act: func(r recording) {
			link := r.w.waiting(r.run)
			r.run.c.startAs(r.run.user, r.run.app, map[string]string{"task": "And again?", "mode": "chat", "session": r.run.id}) // queued
			r.w.loginAs(link, "alice")
			r.w.eventually("both messages are answered", func() bool {
				return len(r.w.query(`SELECT id FROM invocations WHERE workflow_id = ? AND status = 'done'`, r.workflow())) == 2
			})
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/cancel"), map[string]string{}, nil)) // the idle session
			r.w.eventually("the session is closed", func() bool { return r.run.status().State == "cancelled" })
		}},
		{name: "chat_cancelled", mode: "chat", steps: call("list_tickets") + text("Four tickets."), act: func(r recording) {
			link := r.w.waiting(r.run)
			for range 2 {
				r.run.c.startAs(r.run.user, r.run.app, map[string]string{"task": "And again?", "mode": "chat", "session": r.run.id})
			}
			queued := r.w.query(`SELECT invocation FROM inbox WHERE workflow_id = ? ORDER BY seq`, r.workflow())
			require.Equal(r.w.t, 202, r.run.c.call("POST", r.run.path("/cancel"), map[string]string{"invocation": queued[1]}, nil))
			r.w.loginAs(link, "alice")
			r.w.eventually("the third message is answered", func() bool {
				ended := r.w.query(`SELECT status FROM invocations WHERE workflow_id = ? ORDER BY created`, r.workflow())
				return slices.Equal(ended, []string{"done", "cancelled", "done"})
			})
		}},
		{name: "continued", steps: call("list_tickets") + call("whoami") + text("Done."), act: func(r recording) {
			r.w.waiting(r.run)
			r.signal(wire.SignalContinueAsNew, nil)
			r.login()
		}},
		{name: "no_tools", tools: []string{}, steps: text("Hello."), act: func(recording) {}},
		{name: "worker_killed", steps: call("list_tickets") + text("Still here."), act: func(r recording) {
			link := r.w.waiting(r.run)
			require.NoError(r.w.t, r.w.Kill(stack.Worker))
			r.w.loginAs(link, "alice")
			require.NoError(r.w.t, r.w.Start(r.w.t.Context(), stack.Worker))
		}},
	}, later
}

// TestRecordHistories runs each scenario against the real service and replays its history, one for each run of a chain.
// With -update these become the fixtures of package workflows.
func TestRecordHistories(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	o := example(t)
	o.open = true
	script := strings.Builder{}
	script.WriteString(o.script)
	open, later := scenarios(newCuriousServer(t).url)
	for _, s := range slices.Concat(open, later) {
		o.agents[s.name+"/root_agent.yaml"] = s.agent(free.url)
		fmt.Fprintf(&script, "\n  - agent: %s\n    steps:\n%s", s.name, indent(s.steps, "      "))
	}
	both := beside()
	for path, body := range both.agents {
		o.agents[path] = body
	}
	_, steps, _ := strings.Cut(both.script, "agents:\n")
	script.WriteString("\n" + steps)
	o.script = script.String()
	w := newWorld(t, o)
	temporal := w.temporal()

	record := func(s scenario) {
		in := map[string]string{"task": "Please help me with my tickets."}
		if s.mode != "" {
			in["mode"] = s.mode
		}
		r := recording{w: w, run: w.api.startAs("user-"+s.name, s.name, in), temporal: temporal}
		s.act(r)
		w.finished(r.run)
		r.write(s.name)
	}
	for _, s := range open {
		record(s)
	}
	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = false })
	for _, s := range later {
		record(s)
	}
	r := recording{w: w, run: w.api.startAs("user-loop", "planner", map[string]string{"task": "Plan the next release."}), temporal: temporal}
	r.login()
	w.finished(r.run)
	r.write("loop")

	w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = true })
	r = recording{w: w, run: w.api.startAs("user-parallel", "both", map[string]string{"task": "Go."}), temporal: temporal}
	r.w.waiting(r.run)
	r.signal(wire.SignalContinueAsNew, nil)
	r.w.eventually("the run does not continue as new", func() bool { return r.runs() == 2 })
	r.login()
	w.finished(r.run)
	r.write("parallel_agent")
}

func (s scenario) agent(free string) string {
	out := "name: " + s.name + "\nmodel: ${var:MODEL}\ninstruction: Help with tickets.\n" + s.more
	urls := []string{"${var:MCP_URL}"}
	switch {
	case s.own != "":
		return out + "tools:\n" + s.own
	case s.url != "":
		urls = []string{s.url}
	case s.tools == nil:
	case len(s.tools) == 0:
		return out
	default:
		urls = append(urls, free)
	}
	out += "tools:\n"
	for _, url := range urls {
		out += "  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " + url + "\n"
		if s.guarded {
			out += "      require_confirmation: true\n"
		}
		if s.lazy {
			out += "      tarry: {lazy: true}\n"
		}
	}
	return out
}

// write replays, and with -update saves, the histories of all runs of the chain, the last as NAME.json, those before it as NAME_run1.json and so on.
func (r recording) write(name string) {
	t := r.w.t
	t.Helper()
	id := r.workflow()
	var chain []*historypb.History
	for run := ""; ; {
		h, err := replay.Fetch(t.Context(), r.temporal, id, run)
		require.NoError(t, err)
		chain = append([]*historypb.History{h}, chain...)
		if run = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
			break
		}
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	for i, h := range chain {
		file := name
		if i < len(chain)-1 {
			file += fmt.Sprintf("_run%d", i+1)
		}
		body, err := protojson.Marshal(h)
		require.NoError(t, err)
		for _, name := range []string{"@%s@", `"%s:`} { // of identities and sticky queues; payloads are base64 and may hold anything
			body = bytes.ReplaceAll(body, fmt.Appendf(nil, name, host), fmt.Appendf(nil, name, "host"))
		}
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, body, "", " "))
		_, err = replay.Replayer{Agents: r.agents}.Reader(t.Context(), bytes.NewReader(pretty.Bytes()))
		if !r.elsewhere {
			require.NoError(t, err, file)
		}
		if *update {
			require.NoError(t, os.WriteFile(filepath.Join(histories, file+".json"), append(pretty.Bytes(), '\n'), 0o600))
		}
		t.Logf("%s: %d events", file, len(h.GetEvents()))
	}
}
