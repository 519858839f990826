package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/wire"
	"tarry/workflows"
)

// play is a random tree of agents, with what their models answer, what their tools do and what their code is.
type play struct {
	*rand.Rand
	names  int
	root   agent.Node
	turns  map[string][][]string
	custom map[string][]string // lines of programs
	budget int
}

func newPlay(seed uint64) *play {
	p := &play{turns: map[string][][]string{}, custom: map[string][]string{}, budget: 12}
	p.Rand = rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test that can be repeated
	p.root = p.node(0)
	return p
}

func (p *play) name(kind string) string {
	p.names++
	return fmt.Sprintf("%s%d", kind, p.names)
}

func (p *play) node(depth int) agent.Node {
	p.budget--
	kind := p.IntN(10)
	if depth > 3 || p.budget <= 0 {
		kind = 0
	}
	n := agent.Node{Before: p.IntN(5) == 0, After: p.IntN(5) == 0}
	switch {
	case kind < 4:
		n.Kind, n.Name = agent.KindLLM, p.name("llm")
		p.llm(&n, depth)
		return n
	case kind < 6:
		n.Kind, n.Name = agent.KindParallel, p.name("par")
	case kind < 7:
		n.Kind, n.Name = agent.KindSequential, p.name("seq")
	case kind < 8:
		n.Kind, n.Name, n.MaxIterations = agent.KindLoop, p.name("loop"), 1+p.IntN(3)
	default:
		n.Kind, n.Name = agent.KindCustom, p.name("cus")
		n.Custom = n.Name
	}
	for range 1 + p.IntN(3) {
		n.Children = append(n.Children, p.node(depth+1))
	}
	if n.Kind == agent.KindCustom {
		p.program(&n)
	}
	return n
}

func (p *play) llm(n *agent.Node, depth int) {
	if p.IntN(2) == 0 {
		n.Toolsets = []string{"set." + n.Name}
	}
	if depth < 3 && p.IntN(2) == 0 {
		n.AgentTools = append(n.AgentTools, p.node(depth+1))
	}
	var peers []string
	if depth < 3 && p.IntN(2) == 0 {
		child := agent.Node{Name: p.name("sub"), Kind: agent.KindLLM, Before: p.IntN(4) == 0, After: p.IntN(4) == 0}
		p.script(&child, []string{"to " + n.Name})
		n.Children, peers = []agent.Node{child}, []string{"to " + child.Name}
	}
	p.script(n, peers)
}

func (p *play) script(n *agent.Node, peers []string) {
	for range p.IntN(4) {
		var turn []string
		for _, tool := range []string{"free.", "login.", "deadline.", "shared.", "input.", "confirm.", "exit.", "final."} {
			if p.IntN(4) == 0 && (tool < "exit." || tool == "free." || p.IntN(3) == 0) {
				turn = append(turn, tool+n.Name)
			}
		}
		for _, called := range n.AgentTools {
			if p.IntN(2) == 0 {
				turn = append(turn, "agent "+called.Name)
			}
		}
		if len(peers) > 0 && p.IntN(3) == 0 {
			turn = append(turn, peers...)
		}
		if len(turn) == 0 {
			turn = append(turn, "free."+n.Name)
		}
		p.turns[n.Name] = append(p.turns[n.Name], turn)
	}
}

func (p *play) program(n *agent.Node) {
	for range 2 + p.IntN(4) {
		op := []string{"run", "run", "parallel", "emit", "call free.", "call login.", "sleep", "now", "state", "version", "loop", "loop"}[p.IntN(12)]
		if op == "run" {
			op += " " + n.Children[p.IntN(len(n.Children))].Name
		}
		p.custom[n.Name] = append(p.custom[n.Name], op)
	}
}

// perform is a custom agent that runs a program: what follows a loop is its body.
func perform(program []string) workflows.AgentFunc {
	return func(a *workflows.Agent) error { return lines(a, program) }
}

func lines(a *workflows.Agent, program []string) error {
	for i, line := range program {
		op, arg, _ := strings.Cut(line, " ")
		var err error
		switch op {
		case "run":
			_, err = a.Run(arg)
		case "parallel":
			_, err = a.Parallel(a.Children()...)
		case "emit":
			err = a.Emit(workflows.Emission{Text: "x", Escalate: i%2 == 0})
		case "call":
			err = a.Call(arg+a.Name(), nil, nil)
		case "sleep":
			err = a.Sleep(time.Duration(20+i) * time.Minute)
		case "now":
			a.Now()
		case "state":
			_, err = a.State("key", new(string))
		case "version":
			if v := a.Version(fmt.Sprint("v", i), -1, 1); v != 1 {
				err = fmt.Errorf("version %d", v)
			}
		case "loop":
			return a.Loop("loop", func(n int) (bool, error) { return n == 1, lines(a, program[i+1:]) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func hash(s string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s))
	return h.Sum32()
}

// stage makes a world for a play.
func (p *play) stage(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.record, w.turns = newRecord(), p.turns
	for name, program := range p.custom {
		w.custom[name] = perform(program)
	}
	w.read = func(wire.ReadInput) wire.ReadResult { return wire.ReadResult{Value: json.RawMessage(`"x"`)} }
	var each func(n agent.Node)
	each = func(n agent.Node) {
		for _, tool := range []string{"login.", "deadline.", "shared.", "input.", "confirm."} {
			w.tools[tool+n.Name] = asking(w, tool+n.Name)
		}
		w.tools["exit."+n.Name] = exits
		w.tools["final."+n.Name] = func(_ context.Context, _ int, in wire.ToolInput) wire.ToolResult {
			return wire.ToolResult{Event: "re-" + in.Call, Final: true}
		}
		for _, below := range [][]agent.Node{n.Children, n.AgentTools} {
			for _, c := range below {
				each(c)
			}
		}
	}
	each(p.root)
	return w
}

// asking makes a tool that asks in one way.
func asking(w *world, name string) tool {
	return func(_ context.Context, n int, in wire.ToolInput) wire.ToolResult {
		kind, _, _ := strings.Cut(name, ".")
		if in.Answered != "" {
			return wire.ToolResult{Event: "re-" + in.Call}
		}
		out := wire.ToolResult{Asked: wire.Asked{Request: fmt.Sprintf("r.%s.%d", name, n), Input: kind == "input", Confirmation: kind == "confirm"}}
		switch kind {
		case "deadline":
			out.Deadline = w.start.Add(time.Duration(hash(name)%100) * time.Hour)
		case "shared":
			out.Request = "r.shared"
		}
		return out
	}
}

// outcome is what people answer to a request, whenever they do.
func outcome(request string) wire.Outcome {
	return []wire.Outcome{wire.OutcomeGranted, wire.OutcomeGranted, wire.OutcomeDenied, wire.OutcomeAnswered}[hash(request)%4]
}

// people answers what is asked, every half hour.
func people(w *world, each func()) {
	for i := 1; i < 400; i++ {
		w.after(time.Duration(i)*30*time.Minute, func() {
			for _, request := range w.status().Requests {
				if !strings.HasPrefix(request, "r.deadline") {
					w.resolve(request, outcome(request))
				}
			}
			if each != nil {
				each()
			}
		})
	}
}

// Random trees of agents do the same whether or not their runs go on for others, and whatever comes twice or out of turn; and
// when parts of them are cancelled, they still end once, with every call answered once.
func TestRandomAgents(t *testing.T) {
	t.Parallel()
	const plays = 50
	for seed := range uint64(plays) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			randomPlay(t, seed)
		})
	}
}

func randomPlay(t *testing.T, seed uint64) {
	t.Helper()
	p := newPlay(seed)
	last, runs := p.perform(t, func(w *world) { people(w, nil) })
	require.Equal(t, 1, runs)
	want := done(last.seen())
	require.Equal(t, 1, want["finish done"], last.seen())

	dice := newDice(seed)
	again, runs := p.perform(t, func(w *world) {
		w.at = func(string) {
			if dice(8) == 0 {
				w.again()
			}
		}
		people(w, func() {
			if dice(12) == 0 {
				w.again()
			}
		})
	})
	t.Log("runs", runs, "of", len(again.seen()), "activities")
	require.Equal(t, want, done(again.seen()))

	noisy, _ := p.perform(t, func(w *world) {
		w.at = func(name string) {
			switch dice(10) {
			case 0:
				w.again()
			case 1:
				w.message("in-1")
			case 2:
				w.cancel("inv-in-0")
			case 3:
				w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Invocation: "call-0", Call: "call-0"})
			case 4:
				if tool, ok := strings.CutPrefix(name, "tool "); ok && !strings.HasPrefix(tool, "deadline") && !strings.HasPrefix(tool, "shared") {
					request := fmt.Sprintf("r.%s.%d", tool, w.count(name)) // earlier than the run knows of it
					w.resolve(request, outcome(request))
					w.resolve(request, outcome(request))
				}
			}
		}
		people(w, func() {
			w.resolve("r.nobody", wire.OutcomeDenied)
			if dice(12) == 0 {
				w.again()
			}
		})
	})
	require.Equal(t, want, done(noisy.seen()))
	p.cancelled(t, dice)
}

// cancelled cancels anything at any time.
func (p *play) cancelled(t *testing.T, dice func(n int) int) {
	t.Helper()
	last, _ := p.perform(t, func(w *world) {
		w.closes = true
		cancel := func() {
			switch dice(40) {
			case 0:
				w.cancel("inv-in-1")
			case 1:
				w.cancel("")
			case 2:
				w.CancelWorkflow()
			case 3, 4, 5, 6, 7:
				w.again()
			case 8, 9, 10, 11, 12, 13:
				if calls := w.record.callIDs(); len(calls) > 0 {
					call := calls[dice(len(calls))]
					w.SignalWorkflow(wire.SignalCancel, wire.Cancel{Invocation: call, Call: call})
				}
			}
		}
		w.at = func(name string) {
			if name != "take" { // the test environment forgets what an activity did that is cancelled as it ends
				cancel()
			}
		}
		people(w, cancel)
	})
	require.Len(t, last.finishes, 1, last.seen())
}

// newDice is safe for use by several at once.
func newDice(seed uint64) func(n int) int {
	var mu sync.Mutex
	r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a test that can be repeated
	return func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return r.IntN(n)
	}
}

// perform plays to the end, over as many runs as it takes, and checks what must hold of any.
func (p *play) perform(t *testing.T, prepare func(w *world)) (last *world, runs int) {
	t.Helper()
	w := p.stage(t)
	w.start = w.Now()
	now := w.start
	in := input(wire.ModeJob, p.root)
	for {
		runs++
		require.Less(t, runs, 300, w.seen())
		w.SetStartTime(now)
		prepare(w)
		err := w.run(in)
		now = w.Now()
		if err == nil || strings.Contains(err.Error(), "canceled") {
			break
		}
		in = w.continued(err)
		names := w.seen()
		next := w.resume()
		next.start, next.closes, next.finishes = w.start, w.closes, w.finishes
		next.names, next.inputs = names, make([]string, len(names))
		w = next
	}
	require.Empty(t, w.record.problems)
	require.Len(t, w.finishes, 1, w.seen())
	if w.finishes[0].End == wire.EndDone {
		require.Empty(t, slices.DeleteFunc(w.record.missing(w.finishes[0].Heads), func(event string) bool {
			return w.closes && !strings.HasPrefix(event, "se-") // the test environment forgets what activities said that are cancelled as they end
		}))
		view := w.record.view(w.finishes[0].Heads)
		for call, made := range w.record.calls {
			if w.closes && !view[made.event] {
				continue
			}
			require.NotEmpty(t, w.record.answers[call], "call %s of %s", call, made.agent)
		}
	}
	require.True(t, slices.ContainsFunc(w.seen(), func(n string) bool { return strings.HasPrefix(n, "finish") }))
	return w, runs
}
