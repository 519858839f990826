package tarrytest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry"
	"tarry/agent"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/workflows"
)

func llm(name string, children ...*agent.Agent) *agent.Agent {
	return &agent.Agent{Name: name, Kind: agent.KindLLM, Model: "acme/large", SubAgents: children}
}

func tree(root *agent.Agent) tarry.App {
	a := app(0)
	a.Agents = []*agent.Definition{{App: "tree", Root: root}}
	return a
}

// said lists who said what, questions and notices left out.
func said(run *tarrytest.Run) (out []string) {
	for _, e := range run.Events() {
		switch {
		case e.Kind == session.KindUser || e.Kind == session.KindRequest:
		case len(e.Calls()) > 0:
			out = append(out, e.Author+" calls "+e.Calls()[0].Name)
		case len(e.Responses()) > 0:
			out = append(out, e.Author+" gets "+e.Responses()[0].Name)
		default:
			out = append(out, e.Author+": "+e.Text()+e.ErrorCode)
		}
	}
	return out
}

// heard is what the model of an agent was last asked, as lines.
func heard(m *tarrytest.Model, name string) (out []string) {
	for _, r := range m.Requests() {
		if r.Agent != name {
			continue
		}
		out = nil
		for _, c := range r.Contents {
			for _, p := range c.Parts {
				switch {
				case p.Text != "":
					out = append(out, c.Role+": "+p.Text)
				case p.FunctionCall != nil:
					out = append(out, "call "+p.FunctionCall.Name)
				case p.FunctionResponse != nil:
					out = append(out, fmt.Sprintf("response %s %v", p.FunctionResponse.Name, p.FunctionResponse.Response))
				}
			}
		}
	}
	return out
}

func to(name string) tarrytest.Turn {
	return tarrytest.Calls(agent.TransferToAgent, map[string]any{"agent_name": name})
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	model := tarrytest.NewModel().For("root", to("billing")).For("billing", to("nobody"), to("refunds")).For("refunds", tarrytest.Says("refunded"))
	root := llm("root", llm("billing", llm("refunds")))
	root.SubAgents[0].Description = "Knows about bills."
	run := tarrytest.Start(t, tree(root), "I was charged twice.", tarrytest.WithModel(model))
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, []string{
		"root calls transfer_to_agent", "root gets transfer_to_agent", "billing calls transfer_to_agent", "billing gets transfer_to_agent",
		"billing calls transfer_to_agent", "billing gets transfer_to_agent", "refunds: refunded",
	}, said(run))
	require.Contains(t, heard(model, "billing"), `response transfer_to_agent map[error:There is no agent "nobody" to transfer to. agent_name is one of: refunds, root.]`)
	require.Contains(t, heard(model, "billing"), "user: [root] called tool `transfer_to_agent` with parameters: {\"agent_name\":\"billing\"}")
	events := run.Events()
	require.Equal(t, "billing", events[2].Actions.TransferToAgent)
	require.Empty(t, events[4].Actions.TransferToAgent)
	require.Contains(t, model.Requests()[0].Config.SystemInstruction.Parts[0].Text, "- billing: Knows about bills.")
}

func TestAgentTool(t *testing.T) {
	t.Parallel()
	expert := llm("expert")
	expert.OutputKey, expert.Tools = "advice", []agent.Tool{{Function: "read_file"}}
	root := llm("root")
	root.Instruction, root.Tools = "{advice?}", []agent.Tool{{Agent: &agent.AgentTool{Agent: expert}}}
	model := tarrytest.NewModel().
		For("root", tarrytest.Calls("expert", map[string]any{"request": "read the plan"}).And(tarrytest.Calls("expert", map[string]any{"ask": 1})), tarrytest.Says("thanks")).
		For("expert", tarrytest.Calls("read_file", map[string]any{"name": "plan"}), tarrytest.Says("the plan is good"))
	run := tarrytest.Start(t, tree(root), "Is the plan good?", tarrytest.WithModel(model))
	require.Equal(t, "drive", run.Waiting()[0].Key, "what the agent behind the tool waits for, the run waits for")
	run.Grant("drive", "token")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, []string{"user: read the plan", "call read_file", "response read_file map[result:plan read with token]"}, heard(model, "expert"))
	require.Equal(t, []string{
		"user: Is the plan good?", "call expert", "call expert",
		"response expert map[result:the plan is good]", "response expert map[error:agent expert is called with request: a text]",
	}, heard(model, "root"))
	require.Equal(t, "the plan is good", run.State()["advice"])
	for _, r := range run.Events() {
		require.Equal(t, r.Author == "expert", r.IsolationScope != "", r.ID)
	}
}

func TestAgentToolSkipsSummarization(t *testing.T) {
	t.Parallel()
	root := llm("root")
	root.Tools = []agent.Tool{{Agent: &agent.AgentTool{Agent: llm("expert"), SkipSummarization: true}}}
	model := tarrytest.NewModel().For("root", tarrytest.Calls("expert", map[string]any{"request": "x"})).For("expert", tarrytest.Says("enough"))
	run := tarrytest.Start(t, tree(root), "Go.", tarrytest.WithModel(model))
	require.Equal(t, []string{"root calls expert", "expert: enough", "root gets expert"}, said(run))
	require.True(t, run.Events()[3].Actions.SkipSummarization)
}

// Callbacks around tools run around agents that serve as tools, too.
func TestToolCallbacksAroundAgents(t *testing.T) {
	t.Parallel()
	set := callbacks.Set{
		BeforeTool: map[string]callbacks.BeforeTool{
			"note": func(_ context.Context, c *callbacks.Context, call tools.Call) (map[string]any, error) {
				c.Set("called", call.Name+" "+string(call.Args))
				return nil, nil
			},
			"answer": func(context.Context, *callbacks.Context, tools.Call) (map[string]any, error) {
				return map[string]any{"result": "no need"}, nil
			},
			"fail": func(context.Context, *callbacks.Context, tools.Call) (map[string]any, error) {
				return nil, errors.New("secret")
			},
		},
		AfterTool: map[string]callbacks.AfterTool{
			"shout": func(_ context.Context, c *callbacks.Context, _ tools.Call, response map[string]any) (map[string]any, error) {
				c.Set("shouted", true)
				return map[string]any{"result": fmt.Sprint(response["result"], "!")}, nil
			},
		},
	}
	for name, tt := range map[string]struct {
		named agent.Callbacks
		hears string
		ran   bool
		state map[string]any
	}{
		"none":     {nil, "map[result:enough]", true, map[string]any{}},
		"notes":    {agent.Callbacks{agent.BeforeTool: {{Name: "note"}}}, "map[result:enough]", true, map[string]any{"called": `expert {"request":"x"}`}},
		"answers":  {agent.Callbacks{agent.BeforeTool: {{Name: "answer"}}, agent.AfterTool: {{Name: "shout"}}}, "map[result:no need!]", false, map[string]any{"shouted": true}},
		"fails":    {agent.Callbacks{agent.BeforeTool: {{Name: "fail"}}, agent.AfterTool: {{Name: "shout"}}}, "map[error:The agent was not called: a check before it failed.]", false, map[string]any{}},
		"replaces": {agent.Callbacks{agent.AfterTool: {{Name: "shout"}}}, "map[result:enough!]", true, map[string]any{"shouted": true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := llm("root")
			root.Callbacks, root.Tools = tt.named, []agent.Tool{{Agent: &agent.AgentTool{Agent: llm("expert")}}}
			a := tree(root)
			a.Callbacks = set
			model := tarrytest.NewModel().For("root", tarrytest.Calls("expert", map[string]any{"request": "x"}), tarrytest.Says("ok")).For("expert", tarrytest.Says("enough"))
			run := tarrytest.Start(t, a, "Go.", tarrytest.WithModel(model))
			require.Equal(t, "done", run.Outcome())
			require.Equal(t, "response expert "+tt.hears, heard(model, "root")[2])
			require.Equal(t, tt.ran, len(heard(model, "expert")) > 0)
			require.Equal(t, tt.state, run.State())
		})
	}
}

func content(text string) (*genai.Content, error) {
	return genai.NewContentFromText(text, genai.RoleModel), nil
}

func TestAgentCallbacks(t *testing.T) {
	t.Parallel()
	around := callbacks.Set{
		BeforeAgent: map[string]callbacks.BeforeAgent{
			"note": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
				c.Set("begun", c.Agent)
				return nil, nil
			},
			"skip":  func(context.Context, *callbacks.Context) (*genai.Content, error) { return content("not today") },
			"fail":  func(context.Context, *callbacks.Context) (*genai.Content, error) { return nil, errors.New("secret") },
			"panic": func(context.Context, *callbacks.Context) (*genai.Content, error) { panic("secret") },
		},
		AfterAgent: map[string]callbacks.AfterAgent{
			"sign": func(_ context.Context, c *callbacks.Context) (*genai.Content, error) {
				return content("signed by " + c.Agent)
			},
		},
	}
	named := func(p agent.CallbackPoint, name string) agent.Callbacks {
		return agent.Callbacks{p: {{Name: name}}}
	}
	for name, tt := range map[string]struct {
		root    *agent.Agent
		says    []string
		outcome string
		state   map[string]any
	}{
		"before": {
			root: &agent.Agent{Name: "root", Kind: agent.KindSequential, Callbacks: named(agent.BeforeAgent, "note"), SubAgents: []*agent.Agent{llm("a")}},
			says: []string{"root: ", "a: ok"}, outcome: "done", state: map[string]any{"begun": "root"},
		},
		"skipped": {
			root: &agent.Agent{Name: "root", Kind: agent.KindSequential, SubAgents: []*agent.Agent{
				{Name: "a", Kind: agent.KindLLM, Model: "acme/large", Callbacks: agent.Callbacks{agent.BeforeAgent: {{Name: "note"}, {Name: "skip"}, {Name: "fail"}}, agent.AfterAgent: {{Name: "sign"}}}},
				llm("b"),
			}},
			says: []string{"a: not today", "b: ok"}, outcome: "done", state: map[string]any{"begun": "a"},
		},
		"after": {
			root: &agent.Agent{Name: "root", Kind: agent.KindLLM, Model: "acme/large", Callbacks: named(agent.AfterAgent, "sign")},
			says: []string{"root: ok", "root: signed by root"}, outcome: "done", state: map[string]any{},
		},
		"fails": {
			root: &agent.Agent{Name: "root", Kind: agent.KindLLM, Model: "acme/large", Callbacks: named(agent.BeforeAgent, "fail")},
			says: []string{"root: CALLBACK_FAILED", "root: FAILED"}, outcome: "failed", state: map[string]any{},
		},
		"panics": {
			root: &agent.Agent{Name: "root", Kind: agent.KindLLM, Model: "acme/large", Callbacks: named(agent.BeforeAgent, "panic")},
			says: []string{"root: CALLBACK_FAILED", "root: FAILED"}, outcome: "failed", state: map[string]any{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := tree(tt.root)
			a.Callbacks = around
			run := tarrytest.Start(t, a, "Go.", tarrytest.WithModel(tarrytest.NewModel(tarrytest.Says("ok"))))
			require.Equal(t, tt.says, said(run))
			require.Equal(t, tt.outcome, run.Outcome())
			require.Equal(t, tt.state, run.State())
			for _, e := range run.Events() {
				require.NotContains(t, string(e.Body), "secret")
			}
		})
	}
}

// Callbacks after agents that hand over are nested, as in ADK.
func TestAgentCallbacksAroundTransfers(t *testing.T) {
	t.Parallel()
	root := llm("root", llm("child"))
	a := tree(root)
	a.Callbacks = callbacks.Set{AfterAgent: map[string]callbacks.AfterAgent{
		"sign": func(_ context.Context, _ *callbacks.Context) (*genai.Content, error) { return content("bye") },
	}}
	root.Callbacks = agent.Callbacks{agent.AfterAgent: {{Name: "sign"}}}
	root.SubAgents[0].Callbacks = root.Callbacks
	model := tarrytest.NewModel().For("root", to("child")).For("child", tarrytest.Says("here"))
	run := tarrytest.Start(t, a, "Go.", tarrytest.WithModel(model))
	require.Equal(t, []string{"root calls transfer_to_agent", "root gets transfer_to_agent", "child: here", "child: bye", "root: bye"}, said(run))
}

// story is ADK's story flow: write, then criticise and revise until the critic is content, then check, and begin anew when
// the tone is wrong.
func story(a *workflows.Agent) error {
	return a.Loop("tone", func(i int) (bool, error) {
		if _, err := a.Run("writer"); err != nil {
			return false, err
		}
		if err := a.Loop("revisions", func(int) (bool, error) {
			escalated, err := a.Parallel("critic", "proofreader")
			return escalated, err
		}); err != nil {
			return false, err
		}
		var text string
		found, err := a.State("story", &text)
		if err != nil || !found {
			return true, errors.Join(err, errors.New("there is no story"))
		}
		var file struct {
			Result string `json:"result"`
		}
		var refused *workflows.ToolError
		err = a.Call("read_file", map[string]any{"name": text}, &file)
		switch {
		case errors.As(err, &refused):
			return true, a.Emit(workflows.Emission{Text: "not published: " + refused.Message})
		case err != nil:
			return false, err
		}
		if err := a.Sleep(time.Hour); err != nil {
			return false, err
		}
		return i == 1, a.Emit(workflows.Emission{Text: fmt.Sprintf("round %d: %s", i, file.Result), State: map[string]any{"round": i}})
	})
}

func storyApp(flow workflows.AgentFunc) tarry.App {
	writer, critic := llm("writer"), llm("critic")
	writer.OutputKey, critic.Tools = "story", []agent.Tool{{Builtin: agent.ExitLoop}}
	a := tree(&agent.Agent{
		Name: "flow", Kind: agent.KindCustom, Custom: "story_flow", Tools: []agent.Tool{{Function: "read_file"}},
		SubAgents: []*agent.Agent{writer, critic, llm("proofreader")}, Model: "acme/large",
	})
	a.CustomAgents = workflows.Agents{"story_flow": flow}
	return a
}

func storyModel() *tarrytest.Model {
	return tarrytest.ModelFunc(func(_ context.Context, r *models.Request) (*models.Response, error) {
		part := &genai.Part{Text: r.Agent + " has spoken"}
		if r.Agent == "critic" && !strings.Contains(fmt.Sprint(r.Contents[len(r.Contents)-1].Parts[0].Text), "critic") {
			part = &genai.Part{FunctionCall: &genai.FunctionCall{Name: agent.ExitLoop}}
		}
		return &models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{part}}}, nil
	})
}

func TestCustomAgent(t *testing.T) {
	t.Parallel()
	run := tarrytest.Start(t, storyApp(story), "Write.", tarrytest.WithModel(storyModel()))
	require.Equal(t, "drive", run.Waiting()[0].Key)
	run.Grant("drive", "token")
	require.Equal(t, "done", run.Outcome())
	require.InDelta(t, 1, run.State()["round"], 0)
	log := said(run)
	require.Equal(t, "writer: writer has spoken", log[0])
	require.Contains(t, log, "flow calls read_file")
	require.Contains(t, log, "flow: round 0: writer has spoken read with token")
	require.Equal(t, "flow: round 1: writer has spoken read with token", log[len(log)-1])
}

func TestCustomAgentIsRefused(t *testing.T) {
	t.Parallel()
	run := tarrytest.Start(t, storyApp(story), "Write.", tarrytest.WithModel(storyModel()))
	run.Deny("drive")
	require.Equal(t, "done", run.Outcome())
	log := said(run)
	require.Contains(t, log[len(log)-1], "flow: not published: The person did not allow the login")
}

func TestCustomAgentFails(t *testing.T) {
	t.Parallel()
	for name, flow := range map[string]workflows.AgentFunc{
		"own error": func(*workflows.Agent) error { return errors.New("no") },
		"no child":  func(a *workflows.Agent) error { _, err := a.Run("nobody"); return err },
		"no state": func(a *workflows.Agent) error {
			var n int
			_, err := a.State("n", &n)
			return errors.Join(err, errors.New("none"))
		},
		"twice":    func(a *workflows.Agent) error { _, err := a.Parallel("critic", "critic"); return err },
		"no tool":  func(a *workflows.Agent) error { return a.Call("nothing", nil, nil) },
		"bad args": func(a *workflows.Agent) error { return a.Call("read_file", func() {}, nil) },
		"bad state": func(a *workflows.Agent) error {
			return a.Emit(workflows.Emission{State: map[string]any{"f": func() {}}})
		},
		"swallowed": func(a *workflows.Agent) error {
			_ = a.Call("read_file", 1, nil)
			return errors.New("args are no object")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := tarrytest.Start(t, storyApp(flow), "Write.", tarrytest.WithModel(storyModel()))
			require.Equal(t, "failed", run.Outcome())
		})
	}
}
