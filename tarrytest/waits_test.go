package tarrytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry"
	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/function"
)

type order struct {
	Amount int `json:"amount"`
}

// shop is an agent with a tool for each kind of wait; policy is its wait policy.
func shop(policy agent.WaitPolicy) tarry.App {
	a := app(0)
	pay := must(function.New("pay", "Pays.", func(_ context.Context, in order) (string, error) {
		return fmt.Sprintf("paid %d", in.Amount), nil
	}, function.RequireConfirmation()))
	refund := must(function.NewCall("refund", "Pays back.", func(_ context.Context, call tools.Call, in order) (string, error) {
		if call.Confirmation == nil {
			return "", &tools.ConfirmationRequiredError{Hint: "Is it theirs?", Payload: map[string]any{"reason": ""}}
		}
		return fmt.Sprintf("refunded %d for %s", in.Amount, call.Confirmation.Payload), nil
	}))
	book := must(function.NewCall("book", "Books days off.", func(_ context.Context, call tools.Call, _ struct{}) (string, error) {
		if call.Answer == nil {
			return "", &tools.AnswerRequiredError{Message: "How many days?", Schema: json.RawMessage(`{"type":"integer","minimum":1}`), Payload: []string{"left: 5"}}
		}
		return "booked " + string(call.Answer), nil
	}))
	ship := must(function.New("ship", "Ships.", func(context.Context, order) (map[string]any, error) {
		return map[string]any{"status": "packing"}, nil
	}, function.LongRunning()))
	a.Tools = append(a.Tools, pay, refund, book, ship)
	root := a.Agents[0].Root
	root.Wait, root.Tools = policy, append(root.Tools, agent.Tool{Function: "pay"}, agent.Tool{Function: "refund"}, agent.Tool{Function: "book"}, agent.Tool{Function: "ship"})
	return a
}

// calls is a model that calls tools once, and says what came of the last one.
func calls(turns ...tarrytest.Turn) *tarrytest.Model {
	all := turns[0]
	for _, turn := range turns[1:] {
		all = all.And(turn)
	}
	return tarrytest.NewModel(all, tarrytest.Says("ok"))
}

func amount(n int) map[string]any { return map[string]any{"amount": n} }

// results are the responses that the model has heard, by tool.
func results(t *testing.T, run *tarrytest.Run) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, e := range responses(run) {
		for _, r := range e.Responses() {
			body, err := json.Marshal(r.Response)
			require.NoError(t, err)
			out[r.Name] += string(body)
		}
	}
	return out
}

// A turn may wait for everything at once; each call goes on when what it waits for is there.
func TestEveryKindAtOnce(t *testing.T) {
	t.Parallel()
	m := calls(
		tarrytest.Calls("read_file", map[string]any{"name": "plan"}), tarrytest.Calls("pay", amount(3)), tarrytest.Calls("refund", amount(4)),
		tarrytest.Calls("book", nil), tarrytest.Calls("ship", amount(5)),
	)
	run := tarrytest.Start(t, shop(agent.WaitPolicy{}), "Do it all.", tarrytest.WithModel(m))
	waits := map[string]tarrytest.Wait{}
	for _, w := range run.Waiting() {
		require.NotEmpty(t, w.Request)
		require.Equal(t, "reader", w.Agent)
		require.Zero(t, w.Deadline)
		waits[w.Tool] = w
	}
	require.Len(t, waits, 5)
	require.Equal(t, tarrytest.KindLogin, waits["read_file"].Kind)
	require.Equal(t, []string{"read"}, waits["read_file"].Scopes)
	require.Equal(t, tarrytest.KindConfirmation, waits["pay"].Kind)
	require.JSONEq(t, `{"amount":3}`, string(waits["pay"].Args))
	require.Contains(t, waits["pay"].Hint, "approve or reject the tool call pay()")
	require.Equal(t, "Is it theirs?", waits["refund"].Hint)
	require.JSONEq(t, `{"reason":""}`, string(waits["refund"].Payload))
	require.Equal(t, tarrytest.KindQuestion, waits["book"].Kind)
	require.Equal(t, "How many days?", waits["book"].Message)
	require.JSONEq(t, `{"type":"integer","minimum":1}`, string(waits["book"].Schema))
	require.JSONEq(t, `["left: 5"]`, string(waits["book"].Payload))
	require.Equal(t, tarrytest.KindResult, waits["ship"].Kind)
	require.JSONEq(t, `{"amount":5}`, string(waits["ship"].Args))

	run.Interim(map[string]any{"status": "shipped"})
	require.Len(t, run.Waiting(), 5, "an interim result ends nothing")
	run.Approve("pay")
	require.Len(t, run.Waiting(), 4)
	run.ApproveWith(map[string]any{"reason": "broken"})
	run.Reply(2, waits["book"].Request)
	run.Grant("drive", "secret-token")
	run.Complete(map[string]any{"status": "arrived"}, "ship")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, map[string]string{
		"read_file": `{"result":"plan read with [secret]"}`, "pay": `{"result":"paid 3"}`, "refund": `{"result":"refunded 4 for {\"reason\":\"broken\"}"}`,
		"book": `{"result":"booked 2"}`, "ship": `{"status":"arrived"}`,
	}, results(t, run))
	require.Len(t, interims(run), 2)
	require.Len(t, m.Requests(), 2)
}

func interims(run *tarrytest.Run) (out []*session.Record) {
	for _, e := range run.Events() {
		if e.Kind == session.KindInterim {
			out = append(out, e)
		}
	}
	return out
}

// What is refused, and what nobody answers in time, is told to the model, or ends the run where the definition says so.
func TestWaitsThatEndWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	const deadline = 24 * time.Hour
	named := func(f func(*tarrytest.Run, ...string)) func(*tarrytest.Run, string) {
		return func(r *tarrytest.Run, tool string) { f(r, tool) }
	}
	for tool, says := range map[string]struct {
		refuse         func(*tarrytest.Run, string)
		refused, later string
		failed         string
	}{
		"pay":  {named((*tarrytest.Run).Reject), "This tool call is rejected.", "nobody approved it before the deadline", "Nobody approved a call of pay"},
		"book": {named((*tarrytest.Run).Decline), "The person did not answer.", "Nobody answered before the deadline", "Nobody answered what book asked for"},
		"ship": {named((*tarrytest.Run).Decline), "ended without a result", "No result came before the deadline", "Nobody said what came of a call of ship"},
	} {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			args := map[string]map[string]any{"pay": amount(1), "ship": amount(1)}[tool]
			start := func(policy agent.WaitPolicy) *tarrytest.Run {
				return tarrytest.Start(t, shop(policy), "Go.", tarrytest.WithModel(calls(tarrytest.Calls(tool, args))))
			}
			run := start(agent.WaitPolicy{})
			says.refuse(run, tool)
			require.Equal(t, "done", run.Outcome())
			require.Contains(t, results(t, run)[tool], says.refused)

			run = start(agent.WaitPolicy{Deadline: deadline, Remind: 10 * time.Hour})
			require.False(t, run.Waiting()[0].Deadline.IsZero())
			run.Expire(tool)
			require.Equal(t, "done", run.Outcome())
			require.Contains(t, results(t, run)[tool], says.later)
			require.Equal(t, 2, reminders(run))

			run = start(agent.WaitPolicy{Deadline: deadline, OnDeadline: agent.DeadlineFail})
			run.Expire(run.Waiting()[0].Request)
			require.Equal(t, "failed", run.Outcome())
			last := run.Events()[len(run.Events())-1]
			require.Equal(t, "DEADLINE_EXPIRED", last.ErrorCode)
			require.Contains(t, last.ErrorMessage, says.failed)
		})
	}
}

func reminders(run *tarrytest.Run) (n int) {
	for _, e := range run.Events() {
		if e.Custom["tarry_reminder"] != nil {
			n++
		}
	}
	return n
}

// The clock of a run goes on across its runs; what comes due while it waits happens, wherever it continues as new.
func TestPass(t *testing.T) {
	t.Parallel()
	run := tarrytest.Start(t, shop(agent.WaitPolicy{Deadline: 100 * time.Hour, Remind: 10 * time.Hour}), "Go.", tarrytest.WithModel(calls(tarrytest.Calls("pay", amount(1)))))
	end := run.Waiting()[0].Deadline
	run.Pass(25 * time.Hour)
	require.Equal(t, 2, reminders(run))
	require.Equal(t, 2, run.Waiting()[0].Reminders)
	run.ContinueAsNew()
	require.Equal(t, end, run.Waiting()[0].Deadline)
	run.Pass(6 * time.Hour)
	require.Equal(t, 3, reminders(run), "at 30 hours")
	run.ContinueAsNew()
	require.Equal(t, 3, run.Runs())
	run.Pass(1000 * time.Hour)
	require.Equal(t, "done", run.Outcome(), "the deadline has passed")
	require.Equal(t, 9, reminders(run))

	run = tarrytest.Start(t, shop(agent.WaitPolicy{Remind: time.Hour}), "Go.", tarrytest.WithModel(calls(tarrytest.Calls("pay", amount(1)))), tarrytest.WithShortRuns())
	run.Pass(150 * time.Minute)
	require.Equal(t, 2, reminders(run))
	require.Greater(t, run.Runs(), 2, "each reminder begins a run")
	run.Approve()
	require.Equal(t, "done", run.Outcome())
}

// A custom agent is called again from its beginning, and does nothing twice.
func TestCustomAgentContinuesAsNew(t *testing.T) {
	t.Parallel()
	whole := tarrytest.Start(t, storyApp(story), "Write.", tarrytest.WithModel(storyModel()))
	whole.Grant("drive", "token")
	for name, opts := range map[string][]tarrytest.Option{"while it waits": nil, "wherever it can": {tarrytest.WithShortRuns()}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := storyModel()
			run := tarrytest.Start(t, storyApp(story), "Write.", append(opts, tarrytest.WithModel(m))...)
			run.ContinueAsNew()
			run.ContinueAsNew()
			require.GreaterOrEqual(t, run.Runs(), 3)
			run.Grant("drive", "token")
			require.Equal(t, "done", run.Outcome())
			require.ElementsMatch(t, said(whole), said(run))
			require.Equal(t, whole.State(), run.State())
		})
	}
}

// What the server of a tool wants of a person is filled in as its page would be.
func TestFill(t *testing.T) {
	t.Parallel()
	seats := must(function.NewCall("seats", "Books seats.", func(_ context.Context, call tools.Call, _ struct{}) (map[string]any, error) {
		if call.Resume == nil {
			return nil, &tools.InputRequiredError{State: "s", Inputs: []tools.Input{{Key: "k", Mode: tools.InputForm, Message: "Where?", Schema: json.RawMessage(
				`{"type":"object","properties":{"row":{"type":"integer"},"aisle":{"type":"boolean"},"name":{"type":"string"}},"required":["row"]}`)}}}
		}
		return map[string]any{"got": call.Resume.Answers["k"]}, nil
	}))
	start := func() *tarrytest.Run {
		a := tarry.App{Agents: []*agent.Definition{{App: "theatre", Root: &agent.Agent{
			Name: "theatre", Kind: agent.KindLLM, Model: "acme/large",
			Tools: []agent.Tool{{MCP: &agent.MCPToolset{Name: "tickets", Transport: agent.TransportStreamableHTTP, URL: "https://mcp.example/mcp"}}},
		}}}}
		tickets := tarrytest.NewToolset(seats)
		tickets.Public = true
		return tarrytest.Start(t, a, "Two seats.", tarrytest.WithModel(calls(tarrytest.Calls("seats", nil))), tarrytest.WithToolset("tickets", tickets))
	}
	run := start()
	require.Equal(t, tarrytest.KindInput, run.Waiting()[0].Kind)
	require.Equal(t, "Where?", run.Waiting()[0].Message)
	run.Fill(map[string]any{"row": 7, "aisle": true})
	require.Equal(t, "done", run.Outcome())
	require.JSONEq(t, `{"got":{"action":"accept","content":{"row":7,"aisle":true}}}`, results(t, run)["seats"])
	run = start()
	run.Decline()
	require.JSONEq(t, `{"got":{"action":"decline"}}`, results(t, run)["seats"])
}

// recorder is a test that may fail without failing this one.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// What a test does wrong fails it, with what would be right.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		turns []tarrytest.Turn
		do    func(*tarrytest.Run)
		says  string
	}{
		"bad answer":     {[]tarrytest.Turn{tarrytest.Calls("book", nil)}, func(r *tarrytest.Run) { r.Reply(0) }, `give one that fits {"type":"integer","minimum":1}`},
		"no JSON":        {[]tarrytest.Turn{tarrytest.Calls("book", nil)}, func(r *tarrytest.Run) { r.Reply(func() {}) }, "the answer is not JSON"},
		"too long":       {[]tarrytest.Turn{tarrytest.Calls("ship", amount(1))}, func(r *tarrytest.Run) { r.Complete(map[string]any{"a": strings.Repeat("x", 2<<20)}) }, "longer than 1048576 bytes"},
		"wrong kind":     {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Reply(1) }, "the run waits for: [confirmation of pay (request "},
		"unknown tool":   {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Approve("buy") }, "approve buy: there is no wait of that kind and name"},
		"ambiguous":      {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1)), tarrytest.Calls("pay", amount(2))}, func(r *tarrytest.Run) { r.Approve("pay") }, "name one by its request"},
		"unnamed":        {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1)), tarrytest.Calls("refund", amount(2))}, func(r *tarrytest.Run) { r.Reject() }, "name one by its request"},
		"payload":        {[]tarrytest.Turn{tarrytest.Calls("refund", amount(2))}, func(r *tarrytest.Run) { r.ApproveWith(func() {}) }, "the payload is not JSON"},
		"no deadline":    {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Expire("pay") }, "has no deadline; set deadline on agent reader"},
		"no such wait":   {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Expire("drive") }, "expire drive: there is no wait of that name"},
		"no such login":  {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Grant("drive", "t") }, `does not wait for the login "drive"`},
		"no time":        {[]tarrytest.Turn{tarrytest.Calls("pay", amount(1))}, func(r *tarrytest.Run) { r.Pass(0) }, "say how long"},
		"has ended":      {[]tarrytest.Turn{tarrytest.Calls("now", nil)}, func(r *tarrytest.Run) { r.Approve() }, "the run has ended (done)"},
		"ended, not new": {[]tarrytest.Turn{tarrytest.Calls("now", nil)}, func(r *tarrytest.Run) { r.ContinueAsNew() }, "continue as new: the run has ended (done)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tb, done := &recorder{TB: t}, make(chan struct{})
			var run *tarrytest.Run
			go func() {
				defer close(done)
				run = tarrytest.Start(tb, shop(agent.WaitPolicy{}), "Go.", tarrytest.WithModel(calls(tt.turns...)))
				open := len(run.Waiting())
				defer func() {
					if open != len(run.Waiting()) {
						t.Errorf("a mistake has ended a wait")
					}
				}()
				tt.do(run)
			}()
			<-done
			require.Contains(t, tb.said, tt.says)
		})
	}
}

// What a person has approved counts for the call that was shown, and what a login gives is not kept in the log.
func TestGuardedCallWithALogin(t *testing.T) {
	t.Parallel()
	a := shop(agent.WaitPolicy{})
	a.Tools = append(a.Tools, must(function.New("wire", "Wires.", func(ctx context.Context, in order) (string, error) {
		token, err := auth.Token(ctx, "drive")
		return fmt.Sprintf("wired %d with %s", in.Amount, token.Access.Reveal()), err
	}, function.RequireConfirmation(), function.Credential(agent.Auth{
		Key: "drive", Type: agent.AuthOAuth2, ClientID: "client", AuthorizationURL: "https://as.example/authorize", TokenURL: "https://as.example/token",
	}))))
	a.Agents[0].Root.Tools = append(a.Agents[0].Root.Tools, agent.Tool{Function: "wire"})
	run := tarrytest.Start(t, a, "Go.", tarrytest.WithModel(calls(tarrytest.Calls("wire", amount(9)))))
	require.Equal(t, tarrytest.KindConfirmation, run.Waiting()[0].Kind)
	run.Approve()
	require.Equal(t, tarrytest.KindLogin, run.Waiting()[0].Kind)
	run.ContinueAsNew()
	run.Grant("drive", "secret-token")
	require.Equal(t, "done", run.Outcome(), "one approval is enough")
	require.Contains(t, results(t, run)["wire"], "wired 9 with [secret]")
}
