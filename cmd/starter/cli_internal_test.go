package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/runs"
)

func TestRun(t *testing.T) {
	t.Parallel()
	full := said(3, "user", `{"text":"Plan."}`) + ask(4, "planner") +
		said(5, "planner", `{"functionCall":{"id":"c1","name":"list_tickets","args":{"status":"open"}}}`) +
		said(6, "planner", `{"functionResponse":{"id":"c1","name":"list_tickets","response":{"tickets":[]}}}`) +
		said(7, "planner", `{"text":"The\nplan."}`)
	for name, c := range map[string]struct {
		args    []string
		ending  string
		change  func(*statusInfo)
		streams []string
		fail    int
		status  int
		stdout  string
		stderr  []string
		asked   []string
	}{
		"done": {
			ending: "done", change: func(s *statusInfo) { s.Answer = "The plan." }, streams: []string{full + "END"}, stdout: "The plan.\n",
			stderr: []string{"session s1\n", "  http://127.0.0.1:8080/connect?request=q1\n", "planner calls list_tickets", "list_tickets answers", "planner: The plan.\n"},
			asked:  []string{"invocation=i1", "until=end"},
		},
		"comes back to a lost connection": {
			ending: "done", streams: []string{said(3, "planner", `{"text":"one"}`), said(4, "planner", `{"text":"two"}`) + "END"},
			stderr: []string{"planner: one\nthe connection is lost", "planner: two\n"}, asked: []string{"after=0", "after=3"},
		},
		// What models, tools and servers write can neither ask for a login nor steer the terminal.
		"forged": {
			ending: "done", change: func(s *statusInfo) { s.Answer = "\x1b]0;owned\x07\u009b2Jdone" },
			streams: []string{said(4, "planner", strings.ReplaceAll(asking, "127.0.0.1:8080", "evil.example")) + "END"},
			stdout:  "\ufffd]0;owned\ufffd\ufffd2Jdone\n", stderr: []string{"planner calls adk_request_credential"},
		},
		"denied":     {ending: "done", change: func(s *statusInfo) { s.Denied, s.Answer = true, "Sorry." }, status: 4, stdout: "Sorry.\n", stderr: []string{"denied or expired"}},
		"failed":     {ending: "failed", change: func(s *statusInfo) { s.Error = "no model" }, status: 1, stderr: []string{"failed: no model"}},
		"limit":      {ending: "limit", status: 1, stderr: []string{"failed"}},
		"cancelled":  {ending: "cancelled", status: 5, stderr: []string{"cancelled"}},
		"superseded": {ending: "superseded", status: 5, stderr: []string{"ended for a newer message"}},
		"detached":   {args: []string{"--detach"}, status: 3, stdout: "s1\n", stderr: []string{"starter show s1 --follow"}},
		"detached, JSON": {
			args: []string{"--detach", "--json"}, status: 3, stdout: `{"session":"s1","invocation":"i1"}` + "\n",
		},
		"internal error": {fail: 500, status: 1, stderr: []string{"starter: the server says: internal error (request r1 in the server's log)"}},
		"refused":        {fail: 409, status: 2, stderr: []string{"internal error"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.runs, f.fail = []statusInfo{session("planner", "s1", c.ending, c.change)}, c.fail
			if f.streams = c.streams; f.streams == nil {
				f.streams = []string{"END"}
			}
			status, stdout, stderr := starter(t.Context(), nil, append([]string{"run", "planner", "Plan.", "--server", f.URL}, c.args...)...)
			require.Equal(t, c.status, status, stderr)
			require.Equal(t, c.stdout, stdout)
			for _, want := range c.stderr {
				require.Contains(t, stderr, want)
			}
			for _, want := range c.asked {
				require.Contains(t, f.seen(), want)
			}
		})
	}
}

func TestRunSends(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	status, _, stderr := starter(t.Context(), map[string]string{"TARRY_SERVER": f.URL}, "run", "planner", "Plan.", "--chat", "--session", "s9", "--user", "a b", "--detach")
	require.Equal(t, exitWaiting, status, stderr)
	require.JSONEq(t, `{"task":"Plan.","mode":"chat","session":"s9"}`, f.last())
	require.Contains(t, f.seen(), "POST /apps/planner/users/a%20b/runs")
}

func TestRunJSON(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.runs = []statusInfo{session("planner", "s1", "done", nil)}
	f.streams = []string{said(3, "planner", `{"text":"The plan."}`) + "END"}
	status, stdout, _ := starter(t.Context(), nil, "run", "planner", "Plan.", "--json", "--server", f.URL)
	require.Zero(t, status)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	var first struct {
		Seq   int64
		Event event
	}
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &first))
	require.EqualValues(t, 3, first.Seq)
	require.Equal(t, "The plan.", first.Event.Content.Parts[0].Text)
	require.Contains(t, lines[1], `{"status":{"app":"planner"`)
}

func TestCtrlCDetaches(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.runs = []statusInfo{session("planner", "s1", "running", waiting)}
	f.streams = []string{ask(3, "planner") + "HANG"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stdout, stderr writer
	done := make(chan int)
	go func() {
		done <- run(ctx, []string{"run", "planner", "Plan.", "--server", f.URL}, func(string) string { return "" }, &stdout, &stderr)
	}()
	require.Eventually(t, func() bool { return strings.Contains(stderr.String(), "connect?request=q1") }, patience, look)
	cancel()
	require.Equal(t, exitWaiting, <-done)
	require.Contains(t, stderr.String(), "detached; the run goes on. Come back with: starter show s1 --follow")
	require.Empty(t, stdout.String())
}

func TestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.json")
	require.NoError(t, os.WriteFile(bad, []byte("nonsense"), 0o600))
	f := newFake(t)
	f.streams = []string{said(3, "planner", `{"text":"hi"}`) + "END"}
	f.runs = []statusInfo{
		session("planner", "s1", "running", waiting), session("planner", "s2", "done", func(s *statusInfo) { s.Answer = "Done." }),
		session("planner", "s3", "done", nil), session("other", "s3", "failed", func(s *statusInfo) { s.Error = "broken" }),
		session("planner", "s4", "idle", func(s *statusInfo) { s.InvocationStatus, s.Denied = "done", true }),
		session("planner", "s5", "running", func(s *statusInfo) { s.InvocationStatus = "done" }),
		session("third", "s7", "waiting_confirmation", func(s *statusInfo) {
			s.WaitingFor = []runs.Waiting{{Kind: "confirmation", Request: "q3", Tool: "send", Agent: "mailer", Since: since, Arguments: json.RawMessage("{\"to\":\"\u202ebob\"}")}}
		}),
		session("third", "s8", "waiting_confirmation", func(s *statusInfo) {
			for _, id := range []string{"q4", "q5"} {
				s.WaitingFor = append(s.WaitingFor, runs.Waiting{Kind: "confirmation", Request: id, Tool: "send", Agent: "mailer", Since: since, Arguments: json.RawMessage(`{"n":"` + id + `"}`)})
			}
		}),
		session("third", "s10", "waiting_input", func(s *statusInfo) {
			s.WaitingFor = []runs.Waiting{{Kind: "question", Request: "q6", Tool: "book", Agent: "booker", Message: "How many\u202e days?", Since: since}}
		}),
		session("third", "s11", "waiting_input", func(s *statusInfo) {
			s.WaitingFor = []runs.Waiting{
				{Kind: "question", Request: "q7", Tool: "book", Agent: "booker", Message: "How many?", Since: since},
				{Kind: "result", Request: "adk-c", Tool: "order", Agent: "booker", Arguments: json.RawMessage(`{"n":1}`), Since: since},
			}
		}),
		session("third", "s6", "waiting_input", func(s *statusInfo) {
			s.WaitingFor = []runs.Waiting{{Kind: "input", Request: "q2", Provider: "https://mcp.example", Tool: "pay", Agent: "planner", Since: since}}
		}),
	}
	f.logins = []runs.Login{
		{Kind: "login", Request: "q1", Status: "pending", Link: "http://x/connect?request=q1", App: "planner", Provider: "https://id.example", Toolset: "mcp", Scopes: []string{"a", "b"}, Created: since},
		{Request: "q0", Status: "granted", Link: "http://x/connect?request=q0", App: "planner", Provider: "https://id.example", Tool: "publish", Created: since},
	}
	for name, c := range map[string]struct {
		args   string
		status int
		stdout string // contained, or everything if it is empty
		stderr string
	}{
		"help lists exit statuses":   {"--help", 0, "4  a login was denied or has expired", ""},
		"unknown command":            {"walk", 2, "", `starter: unknown command "walk" for "starter" (see starter --help)`},
		"unknown flag":               {"list --fast", 2, "", "unknown flag: --fast"},
		"missing argument":           {"run planner", 2, "", "accepts 2 arg(s)"},
		"empty task":                 {"run planner EMPTY", 2, "", "task is empty"},
		"unknown agent":              {"run nobody Plan.", 2, "", `there is no agent "nobody"; the server has: planner`},
		"bad server":                 {"list --server nowhere", 2, "", `--server "nowhere" is not a URL`},
		"unreachable":                {"list --server http://127.0.0.1:1", 2, "", "no server answers at http://127.0.0.1:1: start one with `starter dev`"},
		"no user":                    {"list --user EMPTY", 2, "", "--user is empty"},
		"show, waiting":              {"show s1", 3, "a login at https://id.example for toolset mcp of planner", ""},
		"show, input":                {"show s6", 3, "input for https://mcp.example for tool pay of planner", ""},
		"show, link":                 {"show s1", 3, "http://127.0.0.1:8080/connect?request=q1", ""},
		"show, done":                 {"show s2", 0, "Done.", ""},
		"show, JSON":                 {"show s2 --json", 0, `"answer":"Done."`, ""},
		"show, denied":               {"show s4", 4, "idle", ""},
		"show, next one is queued":   {"show s5", 3, "running", ""},
		"show, of several apps":      {"show s3", 2, "", "choose with --app planner or --app other"},
		"show, of an app":            {"show s3 --app other", 1, "broken", ""},
		"show, unknown":              {"show s9", 2, "", `user user has no session "s9"`},
		"show, unknown of an app":    {"show s9 --app planner", 2, "", "session does not exist"},
		"show, follow":               {"show s2 --follow", 0, "Done.", "planner: hi"},
		"list":                       {"list", 3, "s1       planner  waiting credential", ""},
		"list, JSON":                 {"list --json", 3, `[{"app":"planner","user":"user","session":"s1"`, ""},
		"list, one app":              {"list --app other", 0, "s3       other", ""},
		"list, none":                 {"list --app fourth", 0, "", "no runs"},
		"logins":                     {"logins --all", 3, "pending  planner  https://id.example  toolset mcp   a b", ""},
		"logins, JSON":               {"logins --json", 3, `[{"request":"q1","kind":"login","status":"pending"`, ""},
		"show, approval":             {"show s7", 3, "your approval (starter approve) for tool send of mailer", ""},
		"approve":                    {"approve s7", 0, "", "mailer calls send {\"to\":\"\\u202ebob\"}\napproved; `starter show s7 --follow`"},
		"approve, JSON":              {"approve s7 --json", 0, `{"request":"q3","status":"granted"}`, "mailer calls send"},
		"reject":                     {"approve s8 --reject --request q5", 0, "", "mailer calls send {\"n\":\"q5\"}\nrejected"},
		"approve, which":             {"approve s8", 2, "", `choose with --request q4 (send {"n":"q4"}) or --request q5`},
		"approve, not that":          {"approve s7 --request q4", 2, "", `no call of session s7 waits for approval under the request "q4"`},
		"approve, nothing":           {"approve s1", 2, "", "no call of session s1 waits for approval"},
		"show, question":             {"show s10", 3, "your answer (starter answer) for tool book of booker", ""},
		"show, what is asked":        {"show s10", 3, "How many", ""},
		"show, result":               {"show s11", 3, "the result (starter answer) for tool order of booker", ""},
		"answer":                     {"answer s10 3", 0, "", "answered; `starter show s10 --follow`"},
		"answer, JSON":               {"answer s10 3 --json", 0, `{"request":"q6","status":"granted"}`, ""},
		"answer, decline":            {"answer s10 --decline", 0, "", "declined"},
		"answer, one of two":         {"answer s11 q7 3", 0, "", "answered"},
		"answer, result":             {`answer s11 adk-c {"ok":true} --interim`, 0, "", "noted, and the call waits on"},
		"answer, which":              {"answer s11 3", 2, "", `name one: q7 (book: How many?) or adk-c (order: {"n":1})`},
		"answer, not that":           {"answer s10 q9 3", 2, "", `nothing of session s10 waits for an answer under the request "q9"`},
		"answer, nothing":            {"answer s7 3", 2, "", "nothing of session s7 waits for an answer"},
		"answer, no value":           {"answer s10", 2, "", "VALUE is missing"},
		"answer, value and decline":  {"answer s10 q6 3 --decline", 2, "", "--decline takes no VALUE"},
		"answer, interim":            {"answer s10 3 --interim", 2, "", "--interim is for results of long-running calls; book of booker asks for an answer"},
		"cancel":                     {"cancel s1", 0, "", "asked to cancel; `starter show s1`"},
		"cancel, JSON":               {"cancel s1 --json", 0, `{"app":"planner","invocation":"i1","session":"s1"}`, ""},
		"cancel a call":              {"cancel s1 --call adk-1", 0, "", "asked to cancel call adk-1"},
		"cancel a call, JSON":        {"cancel s1 --call adk-1 --json", 0, `{"app":"planner","call":"adk-1","session":"s1"}`, ""},
		"cancel a call, unknown":     {"cancel s1 --call adk-9", 2, "", "does not exist"},
		"cancel, unknown":            {"cancel s9", 2, "", "no session"},
		"replay, no such file":       {"replay " + filepath.Join(dir, "none.json"), 2, "none.json: no such file", ""},
		"replay, no history":         {"replay " + bad, 2, "not a session's history", ""},
		"replay, JSON":               {"replay --json " + bad, 2, `"error":"`, ""},
		"dev, no directory":          {"dev " + bad, 2, "", "is not a directory"},
		"dev, no programs":           {"dev " + dir + " --bin " + dir, 2, "", "find program devserver"},
		"demo, no agents":            {"demo --agents " + dir, 2, "", "there are no agents in"},
		"demo, no key":               {"demo --agents ../../examples/planner --model gemini/gemini-2.5-flash", 2, "", "needs GEMINI_API_KEY"},
		"demo, no programs":          {"demo --auto --agents ../../examples/planner --bin " + dir, 2, "", "find program devserver"},
		"one line for a wrong usage": {"show", 2, "", "starter: accepts 1 arg(s), received 0 (see starter --help)\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(c.args)
			for i := range args {
				args[i] = strings.ReplaceAll(args[i], "EMPTY", "")
			}
			status, stdout, stderr := starter(t.Context(), map[string]string{"TARRY_SERVER": f.URL}, args...)
			require.Equal(t, c.status, status, stdout+stderr)
			if c.stdout == "" {
				require.Empty(t, stdout)
			}
			require.Contains(t, stdout, c.stdout)
			require.Contains(t, stderr, c.stderr)
			if status == exitUnusable {
				require.LessOrEqual(t, strings.Count(stderr, "\n"), 1, "one line")
			}
		})
	}
}
