package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

// runs calls the tool "t" and returns what the model hears.
func (w *world) runs(t *testing.T) (wire.ToolResult, map[string]any) {
	t.Helper()
	call := w.calls("t").Calls[0]
	out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "tool", wire.ToolInput{Call: call.ID})
	require.Empty(t, out.Request)
	return out, w.response(out.Event)
}

// A tool whose attempt was killed is called again, with the same key, where that is safe; else the model is told that nobody
// knows (pitfall T28).
func TestToolCrashes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		point string
		opts  []function.Option
		ran   int
		says  string
	}{
		"before it ran":             {"tool.started", nil, 0, "outcome unknown"},
		"after it ran":              {"tool.ran", nil, 1, "outcome unknown"},
		"after it ran, idempotent":  {"tool.ran", []function.Option{function.Idempotent()}, 2, "fine"},
		"after its result was kept": {"tool.stored", nil, 1, "fine"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			keys := map[string]int{}
			made, err := function.NewCall("t", "A tool.", func(_ context.Context, c tools.Call, _ map[string]any) (map[string]any, error) {
				keys[c.ID]++
				return map[string]any{"error": "fine"}, nil
			}, tc.opts...)
			require.NoError(t, err)
			w := newWorld(t, llm("a", functions("t")...), made)
			w.crash(tc.point)
			_, told := w.runs(t)
			require.Contains(t, told["error"], tc.says)
			require.LessOrEqual(t, len(keys), 1)
			for _, n := range keys {
				require.Equal(t, tc.ran, n)
			}
		})
	}
}

// What becomes of a tool's error: told to the model, tried again, or unknown.
func TestToolErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		opts  []function.Option
		tries int
		says  string
	}{
		"told":                     {tools.Errorf("no such file"), nil, 1, "no such file"},
		"plain":                    {fmt.Errorf("disk full"), nil, 1, "disk full"},
		"not executed":             {fmt.Errorf("dial: %w", tools.ErrNotExecuted), nil, 5, "cannot be reached"},
		"provider down":            {fmt.Errorf("token: %w", auth.ErrUnavailable), nil, 5, "cannot be reached"},
		"unknown":                  {fmt.Errorf("502: %w", tools.ErrUnknown), nil, 1, "outcome unknown"},
		"unknown, idempotent":      {fmt.Errorf("502: %w", tools.ErrUnknown), []function.Option{function.Idempotent()}, 5, "cannot be reached"},
		"misconfigured":            {fmt.Errorf("client: %w", auth.ErrMisconfigured), nil, 1, "not set up"},
		"a credential not its own": {fmt.Errorf("x: %w", auth.ErrNotDeclared), nil, 1, "not set up"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tries := 0
			w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (string, error) {
				tries++
				return "", tc.err
			}, tc.opts...))
			_, told := w.runs(t)
			require.Equal(t, tc.tries, tries)
			require.Contains(t, told["error"], tc.says)
		})
	}
}

type panics struct{ tools.Tool }

func (panics) Call(context.Context, tools.Call) (tools.Result, error) { panic(token) }

func TestToolPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("t")...), panics{tool(t, "t", func(context.Context, none) (string, error) { return "", nil })})
	_, told := w.runs(t)
	require.Equal(t, map[string]any{"error": "the tool failed: internal error"}, told)
	require.NotContains(t, w.log.String(), token)
}

// Neither a result nor an error nor a log line holds the token that a tool was given (pitfall T11, invariant I1).
func TestTokensAreScrubbed(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func(token string) (map[string]any, error){
		"result": func(token string) (map[string]any, error) {
			return map[string]any{"echo": "Bearer " + token, "deep": []any{map[string]any{token: token}}}, nil
		},
		"error": func(token string) (map[string]any, error) { return nil, fmt.Errorf("refused: %s", token) },
		"cause": func(token string) (map[string]any, error) {
			return nil, &tools.Error{Message: "refused", Cause: fmt.Errorf("%s", token)}
		},
		"unknown": func(token string) (map[string]any, error) { return nil, fmt.Errorf("%s: %w", token, tools.ErrUnknown) },
		"misconfigured": func(token string) (map[string]any, error) {
			return nil, fmt.Errorf("%s: %w", token, auth.ErrMisconfigured)
		},
		"panic": func(token string) (map[string]any, error) { panic(token) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
				got, err := auth.Token(ctx, "drive")
				if err != nil {
					return nil, err
				}
				return f(got.Access.Reveal())
			}, function.Credential(drive)))
			w.credentials.Grant("drive", token)
			w.runs(t)
			for _, e := range w.events() {
				require.NotContains(t, string(e.Body), token)
			}
			require.NotContains(t, w.log.String(), token)
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	t.Run("too long", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (string, error) {
			return strings.Repeat("ö", 10_000), nil
		}))
		_, told := w.runs(t)
		require.Contains(t, told["truncated"], "longer than is kept")
		require.LessOrEqual(t, len(told["result"].(string)), 4096)
		require.NotContains(t, told["result"], "\ufffd")
	})
	t.Run("state, escalation", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (tools.Result, error) {
			return tools.Result{StateDelta: map[string]any{"k": 1}, Escalate: true, SkipSummarization: true}, nil
		}))
		out, _ := w.runs(t)
		require.True(t, out.Escalate)
		require.True(t, out.Final)
		require.Equal(t, map[string]any{"k": 1.0}, w.event(out.Event).Actions.StateDelta)
	})
	t.Run("no JSON", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (tools.Result, error) {
			return tools.Result{Response: map[string]any{"f": func() {}}}, nil
		}))
		_, told := w.runs(t)
		require.Equal(t, map[string]any{"error": "the tool's result is not JSON"}, told)
	})
}

func needing(t *testing.T, name string, ran *int) tools.Tool {
	t.Helper()
	return tool(t, name, func(ctx context.Context, _ map[string]any) (string, error) {
		if _, err := auth.Token(ctx, "drive"); err != nil {
			return "", err
		}
		*ran++
		return "done", nil
	}, function.Credential(drive))
}

// A missing login opens one request, with its event in ADK's words and without a secret (pitfalls P11, P24), however often
// the attempt is repeated; another call that needs the same joins it (pitfall P9).
func TestAsks(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"", "ask.before", "ask.after"} {
		t.Run("killed at "+point, func(t *testing.T) {
			t.Parallel()
			ran := 0
			w := newWorld(t, llm("a", functions("t", "u")...), needing(t, "t", &ran), needing(t, "u", &ran))
			calls := w.calls("t", "u").Calls
			w.crash(point)
			out := must[wire.ToolResult](w, wire.ToolPrefix+calls[0].Tool, "t1", wire.ToolInput{Call: calls[0].ID})
			require.Empty(t, out.Event)
			require.NotEmpty(t, out.Request)
			e := w.event(out.Asking)
			require.Equal(t, session.KindRequest, e.Kind)
			require.Equal(t, []string{out.Request}, e.LongRunningToolIDs)
			asked := e.Calls()[0]
			require.Equal(t, agent.RequestCredential, asked.Name)
			require.Equal(t, out.Request, asked.ID)
			body, err := json.Marshal(asked.Args)
			require.NoError(t, err)
			config := asked.Args["authConfig"].(map[string]any)
			state := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)["state"].(string)
			require.JSONEq(t, `{"functionCallId":"`+calls[0].ID+`","authConfig":{
				"authScheme":{"type":"oauth2","flows":{"authorizationCode":{
					"authorizationUrl":"https://as.example/authorize","tokenUrl":"https://as.example/token","scopes":{"read":""}}}},
				"rawAuthCredential":{"authType":"oauth2","oauth2":{"clientId":"client-1"}},
				"exchangedAuthCredential":{"authType":"oauth2","oauth2":{
					"clientId":"client-1","authUri":"https://tarry.example/connect?request=`+out.Request+`","state":"`+state+`"}},
				"credentialKey":"drive"}}`, string(body))
			require.NotContains(t, string(e.Body), "TARRY_SECRET")

			joined := must[wire.ToolResult](w, wire.ToolPrefix+calls[1].Tool, "u1", wire.ToolInput{Call: calls[1].ID})
			require.Equal(t, out.Request, joined.Request)
			require.Equal(t, 1, w.requests())

			w.credentials.Grant("drive", token)
			done := must[wire.ToolResult](w, wire.ToolPrefix+calls[0].Tool, "t2", wire.ToolInput{Call: calls[0].ID, Answered: out.Request})
			require.Equal(t, map[string]any{"result": "done"}, w.response(done.Event))
			must[wire.ToolResult](w, wire.ToolPrefix+calls[1].Tool, "u2", wire.ToolInput{Call: calls[1].ID, Answered: out.Request})
			require.Equal(t, 2, ran)
		})
	}
}

func (w *world) requests() int {
	w.t.Helper()
	all, err := w.store.Requests(w.t.Context(), w.row.Owner, false, 100)
	require.NoError(w.t, err)
	return len(all)
}

// A login that nobody gave in time is not asked for again in the same invocation.
func TestExpiredIsSticky(t *testing.T) {
	t.Parallel()
	ran := 0
	a := llm("a", functions("t", "u")...)
	a.Wait.Deadline = time.Minute
	w := newWorld(t, a, needing(t, "t", &ran), needing(t, "u", &ran))
	calls := w.calls("t", "u").Calls
	out := must[wire.ToolResult](w, wire.ToolPrefix+calls[0].Tool, "t1", wire.ToolInput{Call: calls[0].ID})
	require.WithinDuration(t, time.Now().Add(time.Minute), out.Deadline, 20*time.Second)
	closed := must[wire.CloseResult](w, wire.ActivityClose, "close", wire.CloseInput{Request: out.Request})
	require.Equal(t, wire.OutcomeExpired, closed.Outcome)

	var other wire.ToolResult
	require.NoError(t, w.do(wire.ToolPrefix+calls[1].Tool, "u1", many, wire.ToolInput{Call: calls[1].ID}, &other))
	require.True(t, other.Denied)
	require.Contains(t, w.response(other.Event)["error"], "Nobody logged in before the deadline")
	require.Equal(t, 1, w.requests())
	require.Zero(t, ran)
}

func TestSettle(t *testing.T) {
	t.Parallel()
	for reason, says := range map[string]string{
		wire.ReasonDenied: "did not allow", wire.ReasonExpired: "deadline", wire.ReasonRefused: "does not accept", wire.ReasonFailed: "not known",
		wire.ReasonCancelled: "cancelled by the person",
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(context.Context, map[string]any) (string, error) { return "x", nil }))
			call := w.calls("t").Calls[0]
			out := must[wire.SettleResult](w, wire.ActivitySettle, "s", wire.SettleInput{Call: call.ID, Reason: reason})
			require.Contains(t, w.response(out.Event)["error"], says)
			late := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "late", wire.ToolInput{Call: call.ID})
			require.Equal(t, out.Event, late.Event, "a call has one answer")
		})
	}
}

// An ending answers the calls that are open, says why, and the next invocation finds a whole conversation (invariant I9).
func TestFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("t", "u")...), tool(t, "t", func(context.Context, map[string]any) (string, error) { return "x", nil }),
		tool(t, "u", func(context.Context, map[string]any) (string, error) { return "x", nil }))
	turn := w.calls("t", "u")
	must[wire.ToolResult](w, wire.ToolPrefix+turn.Calls[0].Tool, "t1", wire.ToolInput{Call: turn.Calls[0].ID})
	invocation := w.event(turn.Event).InvocationID
	out := must[wire.FinishResult](w, wire.ActivityFinish, "f", wire.FinishInput{Invocation: invocation, End: wire.EndCancelled, Heads: []string{turn.Event}})
	view, missing := session.Ancestors(byID(w.events()), out.Heads)
	require.Empty(t, missing)
	contents, err := session.Contents(view, session.Reader{Agent: "a"})
	require.NoError(t, err)
	require.Len(t, contents[2].Parts, 2)
	require.Equal(t, "The call was cancelled.", contents[2].Parts[1].FunctionResponse.Response["error"])
	notice := w.events()[len(w.events())-1]
	require.Equal(t, "CANCELLED", notice.ErrorCode)
	stored, err := w.store.Invocation(t.Context(), w.row.Owner, invocation)
	require.NoError(t, err)
	require.Equal(t, "cancelled", stored.Status)
}

func TestFinishClosesAnIdleSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	must[wire.FinishResult](w, wire.ActivityFinish, "f", wire.FinishInput{End: wire.EndCancelled, Closed: true})
	require.Empty(t, w.events())
	row, err := w.store.Session(t.Context(), w.row.Owner, w.row.ID)
	require.NoError(t, err)
	require.True(t, row.Closed)
	require.Equal(t, "cancelled", row.Status)
}

func byID(all []*session.Record) map[string]*session.Record {
	out := map[string]*session.Record{}
	for _, r := range all {
		out[r.ID] = r
	}
	return out
}

func TestMirror(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a"))
	must[any](w, wire.ActivityMirror, "m", wire.MirrorInput{State: wire.StateWaitingCredential})
	row, err := w.store.Session(t.Context(), w.row.Owner, w.row.ID)
	require.NoError(t, err)
	require.Equal(t, "waiting_credential", row.Status)
}

// A cancellation reaches the body of a tool within two seconds (pitfall T31).
func TestCancelReachesTheTool(t *testing.T) {
	t.Parallel()
	started, ended := make(chan struct{}), make(chan time.Time, 1)
	w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(ctx context.Context, _ map[string]any) (string, error) {
		close(started)
		<-ctx.Done()
		ended <- time.Now()
		return "", ctx.Err()
	}))
	call := w.calls("t").Calls[0]
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{MaxHeartbeatThrottleInterval: time.Second, DefaultHeartbeatThrottleInterval: time.Second})
	w.acts.Register(env)
	cancelled := make(chan time.Time, 1)
	go func() {
		<-started
		cancelled <- time.Now()
		env.CancelWorkflow()
	}()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Second, WaitForCancellation: true})
		return workflow.ExecuteActivity(ctx, wire.ToolPrefix+call.Tool, wire.ToolInput{Call: call.ID}).Get(ctx, nil)
	})
	select {
	case at := <-ended:
		require.Less(t, at.Sub(<-cancelled), 2*time.Second)
	case <-time.After(10 * time.Second):
		t.Fatal("the tool was not told")
	}
	open, err := w.store.Call(t.Context(), w.row, call.ID)
	require.NoError(t, err)
	require.Empty(t, open.Answer)
	require.True(t, open.Started, "it is not known whether it took effect")
}
