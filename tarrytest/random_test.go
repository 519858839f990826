package tarrytest_test

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
	"google.golang.org/genai"

	"tarry"
	"tarry/agent"
	"tarry/callbacks"
	"tarry/internal/matrix"
	"tarry/models"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/workflows"
)

// play is a random tree of agents, with what their models answer.
type play struct {
	*rand.Rand
	names  int
	budget int
	root   *agent.Agent
	turns  map[string][][]string
	custom workflows.Agents
}

func newPlay(seed uint64) *play {
	p := &play{budget: 9, turns: map[string][][]string{}, custom: workflows.Agents{}}
	p.Rand = rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // a test that can be repeated
	p.root = p.agent(0)
	p.root.Model = "matrix/one"
	return p
}

func (p *play) name(kind string) string {
	p.names++
	return fmt.Sprintf("%s%d", kind, p.names)
}

func (p *play) agent(depth int) *agent.Agent {
	p.budget--
	kind := p.IntN(10)
	if depth > 2 || p.budget <= 0 {
		kind = 0
	}
	a := &agent.Agent{}
	if p.IntN(4) == 0 {
		a.Callbacks = agent.Callbacks{agent.BeforeAgent: {{Name: "begin"}}, agent.AfterAgent: {{Name: "end"}}}
	}
	switch {
	case kind < 4:
		a.Kind, a.Name = agent.KindLLM, p.name("llm")
		p.llm(a, depth)
		return a
	case kind < 6:
		a.Kind, a.Name = agent.KindParallel, p.name("par")
	case kind < 7:
		a.Kind, a.Name = agent.KindSequential, p.name("seq")
	case kind < 8:
		a.Kind, a.Name, a.MaxIterations = agent.KindLoop, p.name("loop"), 1+p.IntN(3)
	default:
		a.Kind, a.Name = agent.KindCustom, p.name("cus")
		a.Custom, a.Tools = a.Name, []agent.Tool{{Function: "pay"}}
		p.custom[a.Name] = code
	}
	for range 1 + p.IntN(3) {
		a.SubAgents = append(a.SubAgents, p.agent(depth+1))
	}
	return a
}

// code is a custom agent.
func code(a *workflows.Agent) error {
	children := a.Children()
	if err := a.Loop("twice", func(i int) (bool, error) {
		if _, err := a.Run(children[0]); err != nil {
			return false, err
		}
		if err := a.Emit(workflows.Emission{Text: fmt.Sprintf("%s is at %d", a.Name(), i), State: map[string]any{a.Name(): i}}); err != nil {
			return false, err
		}
		return i == 1, a.Sleep(time.Minute)
	}); err != nil {
		return err
	}
	if _, err := a.Parallel(children...); err != nil {
		return err
	}
	err := a.Call("pay", map[string]any{"amount": 3}, nil)
	if _, refused := err.(*workflows.ToolError); err != nil && !refused { //nolint:errorlint // it is returned as it is
		return err
	}
	var at int
	if found, err := a.State(a.Name(), &at); err != nil || !found || at != 1 {
		return fmt.Errorf("state is %d: %w", at, err)
	}
	return nil
}

func (p *play) llm(a *agent.Agent, depth int) {
	for _, f := range []string{"read", "pay", "job"} {
		a.Tools = append(a.Tools, agent.Tool{Function: f})
	}
	a.Tools = append(a.Tools, agent.Tool{Builtin: agent.RequestInputTool}, agent.Tool{Builtin: "exit_loop"})
	calls := []string{"read", "pay", "job", agent.RequestInputTool, "exit_loop", "unknown"}
	if p.IntN(4) == 0 {
		a.IncludeContents = "none"
	}
	if depth < 3 && p.IntN(2) == 0 {
		behind := p.agent(depth + 1)
		behind.Model = "matrix/one"
		a.Tools = append(a.Tools, agent.Tool{Agent: &agent.AgentTool{Agent: behind, SkipSummarization: p.IntN(4) == 0}})
		calls = append(calls, "agent "+behind.Name, "agent "+behind.Name)
	}
	if depth < 3 && p.IntN(2) == 0 {
		child := &agent.Agent{Kind: agent.KindLLM, Name: p.name("sub"), Tools: []agent.Tool{{Function: "pay"}}}
		p.script(child, []string{"pay", "to " + a.Name})
		a.SubAgents = []*agent.Agent{child}
		calls = append(calls, "to "+child.Name)
	}
	p.script(a, calls)
}

func (p *play) script(a *agent.Agent, calls []string) {
	for range p.IntN(4) {
		var turn []string
		for _, c := range calls {
			if p.IntN(3) == 0 {
				turn = append(turn, c)
			}
		}
		p.turns[a.Name] = append(p.turns[a.Name], turn)
	}
}

// cast is what plays, once: the models of a play, and what they see that must not be.
type cast struct {
	p  *play
	mu sync.Mutex
	n  map[string]int
	// wrong is what was found; said is every answer.
	wrong, said []string
}

func (c *cast) answer(_ context.Context, r *models.Request) (*models.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if text := paired(r.Contents); text != "" {
		c.wrong = append(c.wrong, r.Agent+": "+text)
	}
	c.n[r.Agent]++
	n := c.n[r.Agent]
	text := fmt.Sprintf("%s says %d.", r.Agent, n)
	c.said = append(c.said, text)
	content := genai.NewContentFromText(text, genai.RoleModel)
	if turns := c.p.turns[r.Agent]; n <= len(turns) {
		for _, name := range turns[n-1] {
			call := &genai.FunctionCall{Name: name}
			if target, ok := strings.CutPrefix(name, "to "); ok {
				call = &genai.FunctionCall{Name: agent.TransferToAgent, Args: map[string]any{"agent_name": target}}
			} else if behind, ok := strings.CutPrefix(name, "agent "); ok {
				call = &genai.FunctionCall{Name: behind, Args: map[string]any{"request": "please"}}
			} else if name == "pay" {
				call.Args = map[string]any{"amount": 3}
			} else if name == agent.RequestInputTool {
				call.Args = map[string]any{"message": "How many?"}
			}
			content.Parts = append(content.Parts, &genai.Part{FunctionCall: call})
		}
	}
	return &models.Response{Content: content, TurnComplete: true}, nil
}

// paired says what is wrong with the calls and responses of a request (invariant I9).
func paired(contents []*genai.Content) string {
	var open []string
	for _, content := range contents {
		var calls, responses []string
		for _, part := range content.Parts {
			if part.FunctionCall != nil {
				calls = append(calls, part.FunctionCall.ID)
			}
			if part.FunctionResponse != nil {
				responses = append(responses, part.FunctionResponse.ID)
			}
		}
		if !slices.Equal(open, responses) {
			return fmt.Sprintf("calls %v are followed by responses %v", open, responses)
		}
		open = calls
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls %v have no response", open)
	}
	return ""
}

func (p *play) app(t *testing.T) tarry.App {
	t.Helper()
	app, err := matrix.App(agent.Auth{
		Key: "matrix", Type: agent.AuthOAuth2, AuthorizationURL: "https://login.example/authorize", TokenURL: "https://login.example/token", ClientID: "matrix",
	})
	require.NoError(t, err)
	app.CustomAgents = p.custom
	app.Agents = []*agent.Definition{{App: "play", Root: p.root}}
	app.Callbacks = callbacks.Set{
		BeforeAgent: map[string]callbacks.BeforeAgent{"begin": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
			c.Set("begun", c.Agent)
			return nil, nil //nolint:nilnil // says nothing
		}},
		AfterAgent: map[string]callbacks.AfterAgent{"end": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
			return genai.NewContentFromText("after "+c.Agent, genai.RoleModel), nil
		}},
	}
	return app
}

// refuses says whether the person refuses what an agent's tool wants.
func refuses(w tarrytest.Wait) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(w.Agent + w.Tool))
	return h.Sum32()%4 == 0
}

func respond(t *testing.T, run *tarrytest.Run, w tarrytest.Wait) {
	t.Helper()
	switch {
	case w.Kind == tarrytest.KindLogin:
		run.Grant(w.Key, "token")
	case w.Kind == tarrytest.KindConfirmation && refuses(w):
		run.Reject(w.Request)
	case w.Kind == tarrytest.KindConfirmation:
		run.Approve(w.Request)
	case refuses(w):
		run.Decline(w.Request)
	case w.Kind == tarrytest.KindQuestion:
		run.Reply(12, w.Request)
	default:
		run.Interim(map[string]any{"status": "halfway"}, w.Request)
		run.Complete(map[string]any{"status": "done"}, w.Request)
	}
}

// wasSaid is what a run has said, in any order and without ids; and it checks what must hold of any run that has ended.
func wasSaid(t *testing.T, run *tarrytest.Run) (lines []string) {
	t.Helper()
	calls, responses := map[string]int{}, map[string]int{}
	for _, e := range run.Events() {
		for _, c := range e.Calls() {
			if e.Kind == session.KindModel || e.Kind == session.KindAgent {
				calls[c.ID]++
				lines = append(lines, fmt.Sprint(e.Author, e.Branch, " calls ", c.Name))
			}
		}
		for _, r := range e.Responses() {
			if e.Kind == session.KindResponse {
				responses[r.ID]++
				body, err := json.Marshal(r.Response)
				require.NoError(t, err)
				if strings.HasPrefix(r.Name, "par") {
					body = nil // what is said side by side has no last word
				}
				lines = append(lines, fmt.Sprint(e.Author, e.Branch, " got ", r.Name, string(body)))
			}
		}
		if text := e.Text(); text != "" {
			lines = append(lines, fmt.Sprint(e.Author, e.Branch, ": ", text))
		}
	}
	require.Equal(t, calls, responses)
	slices.Sort(lines)
	return lines
}

// Agents that wait for one login go on where each has stopped, whoever of them asked for it.
func TestOneLoginForSeveralAgents(t *testing.T) {
	t.Parallel()
	reader := func(name string) *agent.Agent {
		return &agent.Agent{Name: name, Kind: agent.KindLLM, Model: "matrix/one", Tools: []agent.Tool{{Function: "read"}}}
	}
	both := reader("caller")
	both.Tools = append(both.Tools, agent.Tool{Agent: &agent.AgentTool{Agent: reader("behind")}})
	for name, root := range map[string]*agent.Agent{
		"side by side":  {Name: "side", Kind: agent.KindParallel, SubAgents: []*agent.Agent{reader("one"), reader("two")}},
		"behind a tool": both,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &play{root: root, turns: map[string][][]string{"one": {{"read"}}, "two": {{"read"}}, "caller": {{"read", "agent behind"}}, "behind": {{"read"}}}}
			c := &cast{p: p, n: map[string]int{}}
			run := tarrytest.Start(t, p.app(t), "Go on.", tarrytest.WithModel(tarrytest.ModelFunc(c.answer)))
			require.Len(t, run.Waiting(), 1)
			run.Grant("matrix", "token")
			require.Equal(t, "done", run.Outcome())
			require.Empty(t, c.wrong)
			wasSaid(t, run)
		})
	}
}

// Random trees of agents say the same over the real store, wherever their runs go on for others: every call that a model reads
// has its response, and nothing that was said is lost.
func TestRandomAgents(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var want []string
			for _, fault := range []string{"none", "continued", "short", "cancelled"} {
				p := newPlay(seed)
				c := &cast{p: p, n: map[string]int{}}
				dice := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a test that can be repeated
				opts := []tarrytest.Option{tarrytest.WithModel(tarrytest.ModelFunc(c.answer))}
				if fault == "short" {
					opts = append(opts, tarrytest.WithShortRuns())
				}
				run := tarrytest.Start(t, p.app(t), "Go on.", opts...)
				for run.Outcome() == "" {
					waits := run.Waiting()
					switch {
					case fault == "continued" && dice.IntN(2) == 0:
						run.ContinueAsNew()
						continue
					case fault == "cancelled" && dice.IntN(4) == 0:
						run.Cancel()
						continue
					}
					respond(t, run, waits[dice.IntN(len(waits))])
				}
				lines := wasSaid(t, run)
				require.Empty(t, c.wrong, fault)
				for _, text := range c.said {
					require.True(t, slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, ": "+text) }), "%s: %q is lost", fault, text)
				}
				switch {
				case fault == "cancelled" && run.Outcome() == "cancelled":
				case want == nil:
					require.Equal(t, "done", run.Outcome())
					want = lines
				default:
					require.Equal(t, want, lines, fault)
				}
			}
		})
	}
}
