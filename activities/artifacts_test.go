package activities_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/wire"
)

func (w *world) artifact(name string) (text string, versions int) {
	w.t.Helper()
	part, _, err := w.store.Artifact(w.t.Context(), w.row.Owner, w.row.ID, name, session.Latest)
	require.NoError(w.t, err)
	all, err := w.store.ArtifactVersions(w.t.Context(), w.row.Owner, w.row.ID, name)
	require.NoError(w.t, err)
	return part.Text, len(all)
}

func (w *world) upload(name string, p *genai.Part) {
	w.t.Helper()
	_, err := w.store.SaveArtifact(w.t.Context(), w.row.Owner, w.row.ID, session.NewArtifact{Name: name, Part: p})
	require.NoError(w.t, err)
}

func text(s string) *genai.Part { return genai.NewPartFromText(s) }

// saving is a tool that saves report.txt twice and list.txt once in each of its attempts.
func saving(t *testing.T, attempts *atomic.Int32, opts ...function.Option) tools.Tool {
	t.Helper()
	return tool(t, "t", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		n := attempts.Add(1)
		var versions []int
		for i, name := range []string{"report.txt", "report.txt", "user:list.txt"} {
			v, err := tools.SaveArtifact(ctx, tools.Artifact{Name: name, Part: text(fmt.Sprintf("attempt %d, save %d", n, i))})
			if err != nil {
				return nil, err
			}
			versions = append(versions, v)
		}
		loaded, err := tools.LoadArtifact(ctx, "report.txt")
		if err != nil {
			return nil, err
		}
		names, err := tools.ListArtifacts(ctx)
		return map[string]any{"versions": fmt.Sprint(versions), "sees": loaded.Text, "names": strings.Join(names, ",")}, err
	}, opts...)
}

// An attempt that was cut off has saved something: the one after it saves the same versions, and the event names them. So does the
// event of a call whose outcome is unknown (I6).
func TestToolSavesArtifacts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		point   string
		opts    []function.Option
		content string
		unknown bool
	}{
		"at peace":                       {content: "attempt 1, save 1"},
		"killed after it ran":            {"tool.ran", []function.Option{function.Idempotent()}, "attempt 2, save 1", false},
		"killed, and not to be repeated": {"tool.ran", nil, "attempt 1, save 1", true},
		"killed after the result":        {"tool.stored", nil, "attempt 1, save 1", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var attempts atomic.Int32
			w := newWorld(t, llm("a", functions("t")...), saving(t, &attempts, tc.opts...))
			w.crash(tc.point)
			out, told := w.runs(t)
			content, versions := w.artifact("report.txt")
			require.Equal(t, tc.content, content)
			require.Equal(t, 2, versions)
			_, versions = w.artifact("user:list.txt")
			require.Equal(t, 1, versions)
			require.Equal(t, map[string]int{"report.txt": 1, "user:list.txt": 0}, w.event(out.Event).Actions.ArtifactDelta)
			if tc.unknown {
				require.Contains(t, told["error"], "outcome unknown")
				return
			}
			require.Equal(t, map[string]any{"versions": "[0 1 0]", "sees": tc.content, "names": "report.txt,user:list.txt"}, told)
		})
	}
}

// A call that waits for a login after it has saved something saves the same again when it is repeated.
func TestArtifactsOfACallThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(ctx context.Context, _ map[string]any) (string, error) {
		v, err := tools.SaveArtifact(ctx, tools.Artifact{Name: "draft", Part: text("draft")})
		if err != nil {
			return "", err
		}
		token, err := auth.Token(ctx, drive.Key)
		if err != nil {
			return "", err
		}
		// What a tool saves by mistake: the token, as text, in data and in metadata.
		_, err = tools.SaveArtifact(ctx, tools.Artifact{
			Name: "leak", Part: &genai.Part{InlineData: &genai.Blob{Data: []byte("x " + token.Access.Reveal()), MIMEType: "text/x"}},
			Custom: map[string]any{"by": token.Access.Reveal()},
		})
		if err != nil {
			return "", err
		}
		_, err = tools.SaveArtifact(ctx, tools.Artifact{Name: "leak.txt", Part: text(token.Access.Reveal())})
		return fmt.Sprint(v), err
	}, function.Credential(drive)))
	call := w.calls("t").Calls[0]
	asked := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "tool", wire.ToolInput{Call: call.ID})
	require.NotEmpty(t, asked.Request)
	w.credentials.Grant(drive.Key, token)
	out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "again", wire.ToolInput{Call: call.ID, Answered: asked.Request})
	require.Equal(t, map[string]any{"result": "0"}, w.response(out.Event))
	require.Equal(t, map[string]int{"draft": 0, "leak": 0, "leak.txt": 0}, w.event(out.Event).Actions.ArtifactDelta)
	for _, name := range []string{"leak", "leak.txt"} {
		part, v, err := w.store.Artifact(t.Context(), w.row.Owner, w.row.ID, name, 0)
		require.NoError(t, err)
		if part.InlineData != nil {
			part.Text = string(part.InlineData.Data)
			require.NotContains(t, fmt.Sprint(v.Custom), token)
		}
		require.NotContains(t, part.Text, token)
		require.NotEmpty(t, part.Text)
	}
}

// What cannot be kept is told to the model, and nothing is left of it.
func TestArtifactsThatAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(ctx context.Context, _ map[string]any) (string, error) {
		_, err := tools.LoadArtifact(ctx, "nothing")
		require.ErrorIs(t, err, tools.ErrNoArtifact)
		_, err = tools.SaveArtifact(ctx, tools.Artifact{Name: "a/../b", Part: text("x")})
		return "", err
	}))
	out, told := w.runs(t)
	require.Contains(t, told["error"], "which a URL would lose")
	require.Empty(t, w.event(out.Event).Actions.ArtifactDelta)

	_, err := tools.SaveArtifact(t.Context(), tools.Artifact{Name: "a", Part: text("x")})
	require.ErrorContains(t, err, "not that of a call")
}

// Callbacks save as tools do; what they save stands in the event that they belong to.
func TestCallbacksSaveArtifacts(t *testing.T) {
	t.Parallel()
	save := func(ctx context.Context, name string) error {
		_, err := tools.SaveArtifact(ctx, tools.Artifact{Name: name, Part: text(name)})
		return err
	}
	set := callbacks.Set{
		BeforeAgent: map[string]callbacks.BeforeAgent{"save": func(ctx context.Context, _ *callbacks.Context) (*genai.Content, error) {
			return nil, save(ctx, "before_agent")
		}},
		BeforeModel: map[string]callbacks.BeforeModel{"save": func(ctx context.Context, _ *callbacks.Context, _ *models.Request) (*models.Response, error) {
			return nil, save(ctx, "before_model")
		}},
		AfterTool: map[string]callbacks.AfterTool{"save": func(ctx context.Context, _ *callbacks.Context, _ tools.Call, _ map[string]any) (map[string]any, error) {
			return nil, save(ctx, "after_tool")
		}},
	}
	a := llm("a", functions("t")...)
	a.Callbacks = agent.Callbacks{agent.BeforeAgent: {{Name: "save"}}, agent.BeforeModel: {{Name: "save"}}, agent.AfterTool: {{Name: "save"}}}
	var attempts atomic.Int32
	w := newWorldWith(t, set, a, saving(t, &attempts))
	w.crash("model.answered")
	model := w.calls("t")
	require.Equal(t, map[string]int{"before_model": 0}, w.event(model.Event).Actions.ArtifactDelta)
	_, versions := w.artifact("before_model")
	require.Equal(t, 1, versions, "also where the model was asked twice")
	out := must[wire.ToolResult](w, wire.ToolPrefix+model.Calls[0].Tool, "tool", wire.ToolInput{Call: model.Calls[0].ID})
	require.Equal(t, map[string]int{"after_tool": 0, "report.txt": 1, "user:list.txt": 0}, w.event(out.Event).Actions.ArtifactDelta)
	began := must[wire.CallbackResult](w, wire.ActivityCallback, "callback", wire.CallbackInput{Agent: "a", Heads: []string{out.Event}})
	require.False(t, began.Said)
	require.Equal(t, map[string]int{"before_agent": 0}, w.event(began.Event).Actions.ArtifactDelta)
}

// A long-running tool's artifacts stand in its interim result, and once.
func TestLongRunningToolSavesArtifacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, llm("a", functions("t")...), tool(t, "t", func(ctx context.Context, _ map[string]any) (any, error) {
		_, err := tools.SaveArtifact(ctx, tools.Artifact{Name: "order", Part: text("x")})
		return nil, err
	}, function.LongRunning()))
	call := w.calls("t").Calls[0]
	out := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "tool", wire.ToolInput{Call: call.ID})
	require.Equal(t, call.ID, out.Request)
	require.Equal(t, map[string]int{"order": 0}, w.event(out.Asking).Actions.ArtifactDelta)
	w.complete(call.ID, map[string]any{"ok": true})
	done := must[wire.ToolResult](w, wire.ToolPrefix+call.Tool, "done", wire.ToolInput{Call: call.ID, Answered: out.Request})
	require.Empty(t, w.event(done.Event).Actions.ArtifactDelta)
}
