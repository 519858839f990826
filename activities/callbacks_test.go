package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

func named(names ...string) (out []agent.Callback) {
	for _, name := range names {
		out = append(out, agent.Callback{Name: name, Args: json.RawMessage(`{"of":"` + name + `"}`)})
	}
	return out
}

// The first result of a list wins, and what the callbacks set is stored with the answer.
func TestModelCallbacks(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		points agent.Callbacks
		fails  bool
		ran    []string // callbacks, and the model
		text   string
	}{
		"none win":           {agent.Callbacks{agent.BeforeModel: named("pass", "pass"), agent.AfterModel: named("pass")}, false, []string{"pass", "pass", "model", "pass"}, "model"},
		"before":             {agent.Callbacks{agent.BeforeModel: named("pass", "stop", "pass"), agent.AfterModel: named("pass")}, false, []string{"pass", "stop"}, "stop"},
		"after":              {agent.Callbacks{agent.AfterModel: named("stop", "pass")}, false, []string{"model", "stop"}, "stop"},
		"error passes":       {agent.Callbacks{agent.OnModelError: named("stop")}, false, []string{"model"}, "model"},
		"error":              {agent.Callbacks{agent.OnModelError: named("pass", "stop"), agent.AfterModel: named("pass")}, true, []string{"model", "pass", "stop", "pass"}, "stop"},
		"error without help": {agent.Callbacks{agent.OnModelError: named("pass")}, true, []string{"model", "pass"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			run := func(name string, c *callbacks.Context) *models.Response {
				ran = append(ran, name)
				require.JSONEq(t, `{"of":"`+name+`"}`, string(c.Args))
				require.Equal(t, agent.Owner{App: "app", User: "ann"}, c.Owner)
				require.Equal(t, "cats", c.State["topic"])
				n, _ := c.State["n"].(float64)
				c.Set("n", n+1)
				if name == "stop" {
					return answering("stop")
				}
				return nil
			}
			set := callbacks.Set{BeforeModel: map[string]callbacks.BeforeModel{}, AfterModel: map[string]callbacks.AfterModel{}, OnModelError: map[string]callbacks.OnModelError{}}
			for _, name := range []string{"pass", "stop"} {
				set.BeforeModel[name] = func(_ context.Context, c *callbacks.Context, _ *models.Request) (*models.Response, error) {
					return run(name, c), nil
				}
				set.AfterModel[name] = func(_ context.Context, c *callbacks.Context, _ *models.Response) (*models.Response, error) {
					return run(name, c), nil
				}
				set.OnModelError[name] = func(_ context.Context, c *callbacks.Context, _ *models.Request, err error) (*models.Response, error) {
					require.Error(t, err)
					return run(name, c), nil
				}
			}
			a := llm("a")
			a.Callbacks, a.OutputKey = tc.points, "out"
			w := newWorldWith(t, set, a)
			w.state(map[string]any{"topic": "cats", "n": 0.0})
			took := w.says("hello")
			w.model = func(context.Context, *models.Request) (*models.Response, error) {
				ran = append(ran, "model")
				if tc.fails {
					return nil, &models.Error{Kind: models.KindInvalid, Provider: "test"}
				}
				return answering("model"), nil
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.Equal(t, tc.ran, ran)
			e := w.event(out.Event)
			require.Equal(t, tc.text, e.Text())
			require.Equal(t, tc.text == "", out.Failed)
			if tc.text == "" {
				require.Equal(t, "MODEL_ERROR", e.ErrorCode)
				return
			}
			require.Equal(t, tc.text, e.Actions.StateDelta["out"])
			sets := 0
			for _, name := range ran {
				if name != "model" {
					sets++
				}
			}
			if sets > 0 {
				require.EqualValues(t, sets, e.Actions.StateDelta["n"], "each sees what the ones before it have set")
			}
		})
	}
}

// An error that passes is tried again first.
func TestOnModelErrorComesLast(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Callbacks = agent.Callbacks{agent.OnModelError: named("sorry")}
	asked, tries := 0, 0
	w := newWorldWith(t, callbacks.Set{OnModelError: map[string]callbacks.OnModelError{
		"sorry": func(context.Context, *callbacks.Context, *models.Request, error) (*models.Response, error) {
			asked++
			return answering("Later, please."), nil
		},
	}}, a)
	took := w.says("hello")
	w.model = func(context.Context, *models.Request) (*models.Response, error) {
		tries++
		return nil, &models.Error{Kind: models.KindServer, StatusCode: 503, Provider: "test"}
	}
	out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
	require.Equal(t, 8, tries)
	require.Equal(t, 1, asked)
	require.Equal(t, "Later, please.", w.event(out.Event).Text())
}

// What a callback changes is changed in this one request and answer only.
func TestModelCallbacksChangeNothingElse(t *testing.T) {
	t.Parallel()
	a := llm("a")
	a.Callbacks = agent.Callbacks{agent.BeforeModel: named("edit"), agent.AfterModel: named("edit")}
	shared, calls := answering("model"), 0
	w := newWorldWith(t, callbacks.Set{
		BeforeModel: map[string]callbacks.BeforeModel{"edit": func(_ context.Context, c *callbacks.Context, r *models.Request) (*models.Response, error) {
			r.Contents[0].Parts[0].Text += "!"
			if calls++; calls == 1 {
				c.Set("list", []any{"one"})
				return nil, nil
			}
			list, _ := c.State["list"].([]any)
			require.Equal(t, []any{"one"}, list)
			list[0] = "changed"
			return nil, nil
		}},
		AfterModel: map[string]callbacks.AfterModel{"edit": func(_ context.Context, _ *callbacks.Context, r *models.Response) (*models.Response, error) {
			r.Content.Parts[0].Text += "!"
			return nil, nil
		}},
	}, a)
	took := w.says("hello")
	w.model = func(_ context.Context, r *models.Request) (*models.Response, error) {
		require.Equal(t, "hello!", r.Contents[0].Parts[0].Text)
		return shared, nil
	}
	heads := []string{took.Event}
	for _, id := range []string{"m1", "m2", "m3"} {
		out := must[wire.ModelResult](w, wire.ActivityCallModel, id, wire.ModelInput{Agent: "a", Heads: heads})
		require.Equal(t, "model!", w.event(out.Event).Text())
		heads = []string{out.Event}
	}
	require.Equal(t, 3, calls)
	require.Equal(t, "hello", w.event(took.Event).Text())
	require.Equal(t, "model", shared.Content.Parts[0].Text)
}

// A callback that fails ends the invocation; what it says stays in the log, what it panics with nowhere.
func TestModelCallbackFails(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(*callbacks.Context) error{
		"error":    func(*callbacks.Context) error { return errors.New("for the log only") },
		"panic":    func(*callbacks.Context) error { panic("for nobody") },
		"no JSON":  func(c *callbacks.Context) error { c.Set("x", make(chan int)); return nil },
		"no entry": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := llm("a")
			a.Callbacks = agent.Callbacks{agent.BeforeModel: named("check")}
			set := callbacks.Set{}
			if fail != nil {
				set.BeforeModel = map[string]callbacks.BeforeModel{"check": func(_ context.Context, c *callbacks.Context, _ *models.Request) (*models.Response, error) {
					return nil, fail(c)
				}}
			}
			w := newWorldWith(t, set, a)
			took := w.says("hello")
			w.model = func(context.Context, *models.Request) (*models.Response, error) {
				t.Error("the model is asked all the same")
				return answering("x"), nil
			}
			out := must[wire.ModelResult](w, wire.ActivityCallModel, "m", wire.ModelInput{Agent: "a", Heads: []string{took.Event}})
			require.True(t, out.Failed)
			e := w.event(out.Event)
			require.Contains(t, e.ErrorMessage, "check")
			require.NotContains(t, string(e.Body), "only")
			require.NotContains(t, w.log.String(), "for nobody")
			if fail == nil {
				require.Equal(t, "CONFIGURATION", e.ErrorCode)
				return
			}
			require.Equal(t, "CALLBACK_FAILED", e.ErrorCode)
			require.Contains(t, w.log.String(), "callback failed")
		})
	}
}

// The callbacks of a tool call: which of them run, whether the tool does, and what the model is told.
func TestToolCallbacks(t *testing.T) {
	t.Parallel()
	broken := errors.New("for the log only")
	for name, tc := range map[string]struct {
		points agent.Callbacks
		ran    []string
		told   map[string]any
	}{
		"none win":     {agent.Callbacks{agent.BeforeTool: named("pass"), agent.OnToolError: named("stop"), agent.AfterTool: named("pass")}, []string{"before pass", "tool", "after pass"}, map[string]any{"result": "f"}},
		"before":       {agent.Callbacks{agent.BeforeTool: named("stop", "pass"), agent.AfterTool: named("pass")}, []string{"before stop", "after pass"}, map[string]any{"by": "before"}},
		"after":        {agent.Callbacks{agent.AfterTool: named("stop", "pass")}, []string{"tool", "after stop"}, map[string]any{"by": "after"}},
		"before fails": {agent.Callbacks{agent.BeforeTool: named("fail"), agent.OnToolError: named("stop"), agent.AfterTool: named("stop")}, []string{"before fail"}, map[string]any{"error": "The tool was not run: a check before it failed."}},
		"after fails":  {agent.Callbacks{agent.AfterTool: named("fail")}, []string{"tool", "after fail"}, map[string]any{"error": "The tool has run, but a check after it failed and its result is withheld."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			run := func(point, name string, c *callbacks.Context, call tools.Call) (map[string]any, error) {
				ran = append(ran, point+" "+name)
				require.Equal(t, "f", call.Name)
				require.JSONEq(t, `{"n":1}`, string(call.Args))
				c.Set("seen_"+point, true)
				switch name {
				case "stop":
					return map[string]any{"by": point}, nil
				case "fail":
					return nil, broken
				}
				return nil, nil
			}
			set := callbacks.Set{BeforeTool: map[string]callbacks.BeforeTool{}, AfterTool: map[string]callbacks.AfterTool{}, OnToolError: map[string]callbacks.OnToolError{}}
			for _, name := range []string{"pass", "stop", "fail"} {
				set.BeforeTool[name] = func(_ context.Context, c *callbacks.Context, call tools.Call) (map[string]any, error) {
					return run("before", name, c, call)
				}
				set.AfterTool[name] = func(_ context.Context, c *callbacks.Context, call tools.Call, _ map[string]any) (map[string]any, error) {
					return run("after", name, c, call)
				}
				set.OnToolError[name] = func(_ context.Context, c *callbacks.Context, call tools.Call, err error) (map[string]any, error) {
					require.Error(t, err)
					return run("error", name, c, call)
				}
			}
			a := llm("a", functions("f")...)
			a.Callbacks = tc.points
			w := newWorldWith(t, set, a, tool(t, "f", func(context.Context, map[string]any) (string, error) {
				ran = append(ran, "tool")
				return "f", nil
			}))
			out := w.calls("f")
			res := must[wire.ToolResult](w, wire.ToolPrefix+out.Calls[0].Tool, "t", wire.ToolInput{Call: out.Calls[0].ID})
			require.Equal(t, tc.ran, ran)
			require.Equal(t, tc.told, w.response(res.Event))
			require.NotContains(t, string(w.event(res.Event).Body), "only")
			for _, point := range []string{"before", "after"} {
				if len(tc.points[agent.CallbackPoint(point+"_tool")]) > 0 && name != point+" fails" && name != "before fails" {
					require.Equal(t, true, w.event(res.Event).Actions.StateDelta["seen_"+point])
				}
			}
		})
	}
}

// A tool's failure can be put into other words; a login is no failure.
func TestOnToolError(t *testing.T) {
	t.Parallel()
	a := llm("a", functions("f", "g")...)
	a.Callbacks = agent.Callbacks{agent.OnToolError: named("sorry")}
	asked := 0
	w := newWorldWith(t, callbacks.Set{OnToolError: map[string]callbacks.OnToolError{
		"sorry": func(_ context.Context, c *callbacks.Context, call tools.Call, err error) (map[string]any, error) {
			asked++
			c.Set("failed", call.Name+": "+err.Error())
			return map[string]any{"sorry": token}, nil
		},
	}}, a,
		tool(t, "f", func(context.Context, map[string]any) (string, error) { return "", tools.Errorf("no room") }),
		tool(t, "g", func(ctx context.Context, _ map[string]any) (string, error) {
			_, err := auth.Token(ctx, "drive")
			return "", err
		}, function.Credential(drive)))
	out := w.calls("f", "g")
	res := must[wire.ToolResult](w, wire.ToolPrefix+out.Calls[0].Tool, "f", wire.ToolInput{Call: out.Calls[0].ID})
	require.Equal(t, map[string]any{"sorry": token}, w.response(res.Event))
	require.Equal(t, "f: no room", w.event(res.Event).Actions.StateDelta["failed"])
	res = must[wire.ToolResult](w, wire.ToolPrefix+out.Calls[1].Tool, "g", wire.ToolInput{Call: out.Calls[1].ID})
	require.NotEmpty(t, res.Request, "the person is asked")
	require.Equal(t, 1, asked)
}
