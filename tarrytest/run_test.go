package tarrytest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry"
	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/function"
)

func must(tool tools.Tool, err error) tools.Tool {
	if err != nil {
		panic(err)
	}
	return tool
}

type file struct {
	Name string `json:"name"`
}

// app is an agent with a tool that needs a login.
func app(deadline time.Duration) tarry.App {
	drive := agent.Auth{
		Key: "drive", Type: agent.AuthOAuth2, ClientID: "client", Scopes: []string{"read"},
		AuthorizationURL: "https://as.example/authorize", TokenURL: "https://as.example/token",
	}
	read := must(function.New("read_file", "Reads a file.", func(ctx context.Context, f file) (string, error) {
		token, err := auth.Token(ctx, "drive")
		if err != nil {
			return "", err
		}
		return f.Name + " read with " + token.Access.Reveal(), nil
	}, function.Credential(drive), function.Idempotent()))
	free := must(function.New("now", "Tells the time.", func(context.Context, struct{}) (string, error) { return "noon", nil }))
	return tarry.App{
		Tools: []tools.Tool{read, free},
		Agents: []*agent.Definition{{App: "reader", Root: &agent.Agent{
			Name: "reader", Kind: agent.KindLLM, Model: "acme/large", Instruction: "Read.", OutputKey: "answer",
			Tools: []agent.Tool{{Function: "read_file"}, {Function: "now"}}, Wait: agent.WaitPolicy{Deadline: deadline},
		}}},
	}
}

func model() *tarrytest.Model {
	return tarrytest.NewModel(
		tarrytest.Calls("read_file", map[string]any{"name": "report"}).And(tarrytest.Calls("now", nil)),
		tarrytest.Says("It says: {{response.read_file.result}}"),
	)
}

// Calls that do not need the login are answered while the others wait (pitfalls P1, P8, P24).
func TestGrant(t *testing.T) {
	t.Parallel()
	m := model()
	run := tarrytest.Start(t, app(0), "Read the report.", tarrytest.WithModel(m))
	require.Empty(t, run.Outcome())
	waiting := run.Waiting()
	require.Len(t, waiting, 1)
	require.Equal(t, "drive", waiting[0].Key)
	require.Equal(t, "read_file", waiting[0].Tool)
	require.Equal(t, []string{"read"}, waiting[0].Scopes)
	require.Len(t, m.Requests(), 1)
	require.Len(t, responses(run), 1, "the time was told already")

	run.Grant("drive", "secret-token")
	require.Equal(t, "done", run.Outcome())
	require.Empty(t, run.Waiting())
	require.Len(t, m.Requests(), 2)
	require.Equal(t, "It says: report read with [secret]", run.Answer(), "tokens do not reach the log")
	require.Equal(t, run.Answer(), run.State()["answer"])
	for _, e := range run.Events() {
		require.NotContains(t, string(e.Body), "secret-token")
	}
}

func responses(run *tarrytest.Run) (out []*session.Record) {
	for _, e := range run.Events() {
		if e.Kind == session.KindResponse {
			out = append(out, e)
		}
	}
	return out
}

// A denied login, and one that expires, are told to the model, which goes on (pitfalls P30, T21).
func TestDenyAndExpire(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		end  func(*tarrytest.Run)
		says string
	}{
		"deny":   {func(r *tarrytest.Run) { r.Deny("drive") }, "did not allow"},
		"expire": {func(r *tarrytest.Run) { r.Expire("drive") }, "deadline"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := tarrytest.NewModel(
				tarrytest.Calls("read_file", map[string]any{"name": "a"}),
				tarrytest.Calls("read_file", map[string]any{"name": "b"}), // not asked again
				tarrytest.Says("{{last_response.error}}"),
			)
			run := tarrytest.Start(t, app(24*time.Hour), "Read.", tarrytest.WithModel(m))
			require.False(t, run.Waiting()[0].Deadline.IsZero())
			tc.end(run)
			require.Equal(t, "done", run.Outcome())
			require.Len(t, m.Requests(), 3)
			require.Len(t, responses(run), 2)
			require.Contains(t, string(responses(run)[0].Body), tc.says)
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	run := tarrytest.Start(t, app(0), "Read.", tarrytest.WithModel(model()))
	run.Cancel()
	require.Equal(t, "cancelled", run.Outcome())
	require.Len(t, responses(run), 2, "every call has its response (invariant I9)")
}

func TestCredentialsFromTheStart(t *testing.T) {
	t.Parallel()
	var c tarrytest.Credentials
	c.Grant("drive", "secret-token")
	run := tarrytest.Start(t, app(0), "Read.", tarrytest.WithModel(model()), tarrytest.WithCredentials(&c))
	require.Equal(t, "done", run.Outcome())
}

// A toolset asks before it is listed (pitfall P16); denied, the model goes on without its tools.
func TestToolset(t *testing.T) {
	t.Parallel()
	app := tarry.App{Agents: []*agent.Definition{{App: "planner", Root: &agent.Agent{
		Name: "planner", Kind: agent.KindLLM, Model: "gemini-2.5-flash",
		Tools: []agent.Tool{{MCP: &agent.MCPToolset{Name: "tickets", Transport: agent.TransportStreamableHTTP, URL: "https://mcp.example/mcp"}}},
	}}}}
	count := must(function.New("count", "Counts.", func(context.Context, struct{}) (int, error) { return 3, nil }))
	m := tarrytest.NewModel(tarrytest.Calls("count", nil), tarrytest.Says("There are {{last_response.result}}."))

	tickets := tarrytest.NewToolset(count)
	run := tarrytest.Start(t, app, "How many?", tarrytest.WithModel(m), tarrytest.WithToolset("tickets", tickets))
	require.Empty(t, m.Requests())
	require.Equal(t, "tickets", run.Waiting()[0].Toolset)
	run.Grant("tickets", "secret-token")
	require.Equal(t, "There are 3.", run.Answer())
	require.Equal(t, 1, tickets.Lists())
	require.Len(t, tickets.Calls(), 1)

	without := tarrytest.NewModel(tarrytest.Says("I cannot know."))
	run = tarrytest.Start(t, app, "How many?", tarrytest.WithModel(without), tarrytest.WithToolset("tickets", tarrytest.NewToolset(count)))
	run.Deny("tickets")
	require.Equal(t, "I cannot know.", run.Answer())
	require.Contains(t, without.Requests()[0].Config.SystemInstruction.Parts[0].Text, "tickets are not available")
	require.Empty(t, without.Requests()[0].Config.Tools)
}

func TestFailingModel(t *testing.T) {
	t.Parallel()
	run := tarrytest.Start(t, app(0), "Read.", tarrytest.WithModel(tarrytest.NewModel(tarrytest.Fails(400))))
	require.Equal(t, "failed", run.Outcome())
	m := tarrytest.NewModel(tarrytest.Fails(503))
	run = tarrytest.Start(t, app(0), "Read.", tarrytest.WithModel(m))
	require.Equal(t, "failed", run.Outcome())
	require.Len(t, m.Requests(), 8, "what may pass is tried again, on a clock that jumps (pitfalls T29, T30)")
}

func ExampleNewModel() {
	m := tarrytest.NewModel(
		tarrytest.Calls("find", map[string]any{"what": "the report"}),
		tarrytest.Says("Here it is: {{last_response.url}}"),
	)
	fmt.Println(len(m.Requests()))
	// Output: 0
}

// Callbacks and the form of the answer, over whole invocations: a call that asks the person has its callback before each
// try, and the final answer is one that set_model_response gave.
func TestCallbacksAndOutputSchema(t *testing.T) {
	t.Parallel()
	a := app(0)
	root := a.Agents[0].Root
	root.OutputSchema = []byte(`{"type":"object","properties":{"said":{"type":"string"}},"required":["said"]}`)
	root.Callbacks = agent.Callbacks{agent.BeforeTool: {{Name: "count"}}, agent.AfterModel: {{Name: "count"}}}
	var before, after atomic.Int32
	a.Callbacks = callbacks.Set{
		BeforeTool: map[string]callbacks.BeforeTool{"count": func(_ context.Context, c *callbacks.Context, call tools.Call) (map[string]any, error) {
			if before.Add(1); call.Name == "now" {
				return map[string]any{"result": "by callback"}, nil
			}
			c.Set("read", true)
			return nil, nil
		}},
		AfterModel: map[string]callbacks.AfterModel{"count": func(context.Context, *callbacks.Context, *models.Response) (*models.Response, error) {
			after.Add(1)
			return nil, nil
		}},
	}
	m := tarrytest.NewModel(
		tarrytest.Calls("read_file", map[string]any{"name": "report"}).And(tarrytest.Calls("now", nil)),
		tarrytest.Calls("set_model_response", map[string]any{"text": "wrong"}),
		tarrytest.Calls("set_model_response", map[string]any{"said": "{{response.now.result}}"}),
	)
	run := tarrytest.Start(t, a, "Read the report.", tarrytest.WithModel(m))
	require.Len(t, run.Waiting(), 1)
	run.Grant("drive", "secret-token")
	require.Equal(t, "done", run.Outcome())
	require.JSONEq(t, `{"said":"by callback"}`, run.Answer())
	require.Equal(t, map[string]any{"said": "by callback"}, run.State()["answer"])
	require.Equal(t, true, run.State()["read"])
	require.EqualValues(t, 3, before.Load(), "now once, read_file before and after the login")
	require.EqualValues(t, 3, after.Load())
}
