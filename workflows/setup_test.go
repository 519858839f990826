package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
	"tarry/workflows"
)

// world runs the session workflow in the SDK's test environment. Activities are scripted and registered under their wire
// names; what they were asked is noted in order.
type world struct {
	*testsuite.TestWorkflowEnvironment
	t *testing.T

	inbox []string
	// turns are what the models of agents answer, by agent: each a list of tool names, of agents behind tools ("agent x") or of
	// those to hand over to ("to x"); when they are used up, a final text.
	turns map[string][][]string
	tools map[string]tool
	lists map[string]func(n int, in wire.ListInput) wire.ListResult
	close func(in wire.CloseInput) wire.CloseResult
	read  func(in wire.ReadInput) wire.ReadResult
	// custom agents by name; add to it before the run.
	custom workflows.Agents
	kept   map[string][]byte
	// closes says that the request of a cancelled call is closed with it.
	closes bool
	// queued is what the store knows when a message waits to interrupt; nil: whatever the inbox holds, and no answer.
	queued func(n int) wire.QueuedResult
	start  time.Time // of the chain
	// record, if there is one, checks what is said.
	record *record
	// says: callbacks of agents answer in their place.
	says bool
	// tokens is what each model call uses.
	tokens int
	// at is called when an activity begins, with its name as it is noted.
	at func(name string)

	logged *buffer

	mu       sync.Mutex
	names    []string
	inputs   []string
	finishes []wire.FinishInput
	counts   map[string]int
	ids      int
}

// buffer takes a log from several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// tool is called with the number of the call, from 1.
type tool func(ctx context.Context, n int, in wire.ToolInput) wire.ToolResult

func newWorld(t *testing.T) *world {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	logged := &buffer{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.NewJSONHandler(logged, nil))))
	w := &world{
		logged:                  logged,
		TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment(), t: t, inbox: []string{"in-1"}, counts: map[string]int{}, custom: workflows.Agents{}, kept: map[string][]byte{},
		turns: map[string][][]string{}, tools: map[string]tool{}, lists: map[string]func(int, wire.ListInput) wire.ListResult{},
	}
	w.SetTestTimeout(time.Minute)
	w.RegisterWorkflowWithOptions(w.custom.Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	for name, f := range map[string]any{
		wire.ActivityTake: w.take, wire.ActivityListTools: w.list, wire.ActivityCallModel: w.model, wire.ActivityClose: w.closing,
		wire.ActivitySettle: w.settle, wire.ActivityMirror: w.mirror, wire.ActivityFinish: w.finish, wire.ActivityRemind: w.remind, wire.ActivityQueued: w.queue,
		wire.ActivityEmit: w.emit, wire.ActivityOpen: w.open, wire.ActivityRead: w.reading, wire.ActivityKeep: w.keep, wire.ActivityKept: w.keptPart, wire.ActivityReturn: w.returning, wire.ActivityCallback: w.callback,
	} {
		w.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	w.RegisterDynamicActivity(w.tool, activity.DynamicRegisterOptions{})
	return w
}

func (w *world) note(name string, in any) (n int) {
	body, err := json.Marshal(in)
	w.mu.Lock()
	w.names, w.inputs = append(w.names, name), append(w.inputs, string(body))
	w.counts[name]++
	n = w.counts[name]
	at := w.at
	w.mu.Unlock()
	if err != nil {
		panic(err)
	}
	if at != nil {
		at(name)
	}
	return n
}

func (w *world) id(prefix string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("%s-%d", prefix, w.ids)
}

func (w *world) take(_ context.Context, in wire.TakeInput) (wire.TakeResult, error) {
	w.note("take", in)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.inbox) == 0 {
		return wire.TakeResult{}, nil
	}
	next := w.inbox[0]
	w.inbox = w.inbox[1:]
	w.record.said("ev-"+next, in.Heads)
	return wire.TakeResult{Inbox: next, Invocation: "inv-" + next, Event: "ev-" + next}, nil
}

func (w *world) list(_ context.Context, in wire.ListInput) (wire.ListResult, error) {
	n := w.note("list "+in.Toolset, in)
	if f := w.lists[in.Toolset]; f != nil {
		return f(n, in), nil
	}
	return wire.ListResult{List: "list-" + in.Toolset}, nil
}

func (w *world) model(_ context.Context, in wire.ModelInput) (wire.ModelResult, error) {
	w.record.reads(in)
	n := w.note("model "+in.Agent, in)
	out := wire.ModelResult{Event: w.id("ev-" + in.Agent), Tokens: w.tokens}
	if turns := w.turns[in.Agent]; n <= len(turns) {
		for _, name := range turns[n-1] {
			call := wire.Call{ID: w.id("call"), Tool: name}
			if called, ok := strings.CutPrefix(name, "agent "); ok {
				call.Tool, call.Agent = "", called
			}
			if target, ok := strings.CutPrefix(name, "to "); ok {
				call.Tool, call.Answer, call.Transfer = "", "an-"+call.ID, target
			}
			out.Calls = append(out.Calls, call)
		}
	}
	w.record.called(out.Event, in.Agent, in.Scope, in.Heads, out.Calls...)
	return out, nil
}

func (w *world) tool(ctx context.Context, args converter.EncodedValues) (wire.ToolResult, error) {
	name := strings.TrimPrefix(activity.GetInfo(ctx).ActivityType.Name, wire.ToolPrefix)
	var in wire.ToolInput
	if err := args.Get(&in); err != nil {
		return wire.ToolResult{}, err
	}
	w.record.runs(in.Call)
	n := w.note("tool "+name, in)
	if f := w.tools[name]; f != nil {
		out := f(ctx, n, in)
		if ctx.Err() == nil {
			w.record.answered(in.Call, out.Event, nil)
		}
		return out, ctx.Err()
	}
	w.record.answered(in.Call, "re-"+in.Call, nil)
	return wire.ToolResult{Event: "re-" + in.Call}, nil
}

func (w *world) closing(_ context.Context, in wire.CloseInput) (wire.CloseResult, error) {
	w.note("close", in)
	if w.close != nil {
		return w.close(in), nil
	}
	return wire.CloseResult{Outcome: wire.OutcomeExpired}, nil
}

func (w *world) settle(_ context.Context, in wire.SettleInput) (wire.SettleResult, error) {
	w.note("settle "+in.Reason, in)
	if in.Call == "" {
		return wire.SettleResult{}, nil
	}
	if event := w.record.answerOf(in.Call); event != "" { // it came first
		return wire.SettleResult{Event: event}, nil
	}
	w.record.answered(in.Call, "se-"+in.Call, nil)
	return wire.SettleResult{Event: "se-" + in.Call, Closed: w.closes && in.Reason == wire.ReasonCancelled && in.Request != ""}, nil
}

func (w *world) mirror(_ context.Context, in wire.MirrorInput) error {
	if in.Continued {
		w.note("mirror go on", in)
		return nil
	}
	w.note("mirror "+string(in.State), in)
	return nil
}

func (w *world) emit(_ context.Context, in wire.EmitInput) (wire.EmitResult, error) {
	w.note("emit", in)
	out := wire.EmitResult{Event: w.id("em")}
	w.record.said(out.Event, in.Heads)
	return out, nil
}

func (w *world) open(_ context.Context, in wire.OpenInput) (wire.OpenResult, error) {
	w.note("open "+in.Tool, in)
	out := wire.OpenResult{Event: w.id("op"), Call: wire.Call{ID: w.id("call"), Tool: in.Tool}}
	w.record.called(out.Event, in.Agent, in.Scope, in.Heads, out.Call)
	return out, nil
}

func (w *world) reading(_ context.Context, in wire.ReadInput) (wire.ReadResult, error) {
	w.note("read", in)
	if w.read == nil {
		return wire.ReadResult{}, nil
	}
	return w.read(in), nil
}

func (w *world) keep(_ context.Context, in wire.KeepInput) (wire.KeepResult, error) {
	w.note("keep", "a body")
	id := w.id("kept")
	w.kept[id] = in.Body
	return wire.KeepResult{Kept: id}, nil
}

func (w *world) keptPart(_ context.Context, in wire.KeptInput) (wire.KeptResult, error) {
	w.note("kept", in)
	body := w.kept[in.Kept]
	from := in.Part * wire.KeptPart
	to := min(from+wire.KeptPart, len(body))
	return wire.KeptResult{Body: body[from:to], More: to < len(body)}, nil
}

func (w *world) returning(_ context.Context, in wire.ReturnInput) (wire.ReturnResult, error) {
	w.note("return", in)
	w.record.answered(in.Call, "re-"+in.Call, in.Heads)
	return wire.ReturnResult{Event: "re-" + in.Call}, nil
}

func (w *world) callback(_ context.Context, in wire.CallbackInput) (wire.CallbackResult, error) {
	side := "before "
	if in.After {
		side = "after "
	}
	w.note(side+in.Agent, in)
	out := wire.CallbackResult{Event: w.id("cb"), Said: w.says}
	w.record.said(out.Event, in.Heads)
	return out, nil
}

func (w *world) remind(_ context.Context, in wire.RemindInput) error {
	w.note("remind "+in.Request, in)
	return nil
}

func (w *world) queue(_ context.Context, in wire.QueuedInput) (wire.QueuedResult, error) {
	n := w.note("queued", in)
	if w.queued != nil {
		return w.queued(n), nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return wire.QueuedResult{Message: len(w.inbox) > 0}, nil
}

func (w *world) finish(_ context.Context, in wire.FinishInput) (wire.FinishResult, error) {
	w.note("finish "+in.End, in)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.finishes = append(w.finishes, in)
	return wire.FinishResult{Heads: append(slices.Clone(in.Heads), "ev-finish")}, nil
}

func (w *world) seen() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.names)
}

func (w *world) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[name]
}

// input returns the JSON that the n-th activity of a name was given.
func (w *world) input(name string, n int) string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, seen := range w.names {
		if seen == name {
			if n--; n == 0 {
				return w.inputs[i]
			}
		}
	}
	w.t.Fatalf("activity %q was not run that often", name)
	return ""
}

// after calls f at a time of the workflow's clock, which jumps ahead whenever nothing runs.
func (w *world) after(d time.Duration, f func()) { w.RegisterDelayedCallback(f, d) }

func (w *world) message(id string) { w.SignalWorkflow(wire.SignalMessage, wire.Message{Inbox: id}) }

func (w *world) resolve(request string, o wire.Outcome) {
	w.SignalWorkflow(wire.SignalResolved, wire.Resolved{Request: request, Outcome: o})
}

func (w *world) cancel(invocation string) {
	w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Invocation: invocation})
}

func (w *world) status() (s wire.Status) {
	w.t.Helper()
	value, err := w.QueryWorkflow(wire.QueryStatus)
	require.NoError(w.t, err)
	require.NoError(w.t, value.Get(&s))
	return s
}

func input(mode wire.Mode, root agent.Node) wire.SessionInput {
	return wire.SessionInput{Definition: "hash", Mode: mode, Plan: agent.Plan{App: "app", Root: root}}
}

// run starts the session with its first message, runs it to its end and returns the workflow's error.
func (w *world) run(in wire.SessionInput) error {
	w.t.Helper()
	if in.Carry == nil {
		w.after(0, func() { w.message("in-1") })
	}
	w.ExecuteWorkflow(wire.WorkflowSession, in)
	require.True(w.t, w.IsWorkflowCompleted())
	return w.GetWorkflowError()
}

// ends runs a session that must end well.
func (w *world) ends(in wire.SessionInput) {
	w.t.Helper()
	require.NoError(w.t, w.run(in))
}

// continued returns the input of the next run.
func (w *world) continued(err error) (in wire.SessionInput) {
	w.t.Helper()
	var next *workflow.ContinueAsNewError
	require.ErrorAs(w.t, err, &next)
	require.NoError(w.t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &in))
	return in
}

func llm(name string, toolsets ...string) agent.Node {
	return agent.Node{Name: name, Kind: agent.KindLLM, Toolsets: toolsets}
}

func loop(iterations int, children ...agent.Node) agent.Node {
	return agent.Node{Name: "loop", Kind: agent.KindLoop, MaxIterations: iterations, Children: children}
}

func sequence(children ...agent.Node) agent.Node {
	return agent.Node{Name: "sequence", Kind: agent.KindSequential, Children: children}
}

// asks makes a tool that asks for a login and answers once it is called again with that request answered.
func asks(request string, deadline time.Time) tool {
	return func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
		if in.Answered == request {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		return wire.ToolResult{Asked: wire.Asked{Request: request, Asking: "ask-" + request, Deadline: deadline}}
	}
}
