package activities_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/genai"

	"tarry/activities"
	"tarry/agent"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/vault"
	"tarry/callbacks"
	"tarry/models"
	"tarry/models/scripted"
	"tarry/session"
	"tarry/store"
	"tarry/tarrytest"
	"tarry/tools"
	"tarry/tools/builtin"
	"tarry/tools/function"
	"tarry/wire"
)

const (
	workflowID = "default-test-workflow-id"
	runID      = "default-test-run-id" // the test environment's, like the above
	token      = "canary-secret-token"
)

// world holds activities over a real store, with fakes of models, tools and logins.
type world struct {
	t           *testing.T
	store       *store.Store
	path        string // of the database
	acts        *activities.Activities
	row         session.Session
	credentials tarrytest.Credentials
	toolsets    tarrytest.Toolsets
	model       func(ctx context.Context, r *models.Request) (*models.Response, error)
	log         *buffer
	inputs      *inputs.Service
	streaming   bool // the person reads along
	// at is called at fault points; a panic there is the crash of an attempt.
	at func(point string)
}

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

var drive = agent.Auth{
	Key: "drive", Type: agent.AuthOAuth2, ClientID: "client-1", ClientSecret: "${env:TARRY_SECRET_DRIVE}", Scopes: []string{"read"},
	AuthorizationURL: "https://as.example/authorize", TokenURL: "https://as.example/token",
}

func llm(name string, all ...agent.Tool) *agent.Agent {
	return &agent.Agent{Name: name, Kind: agent.KindLLM, Model: "test/one", Instruction: "Help.", Tools: all}
}

func functions(names ...string) (out []agent.Tool) {
	for _, name := range names {
		out = append(out, agent.Tool{Function: name})
	}
	return out
}

func tool[In, Out any](t *testing.T, name string, f func(context.Context, In) (Out, error), opts ...function.Option) tools.Tool {
	t.Helper()
	made, err := function.New(name, "A tool.", f, opts...)
	require.NoError(t, err)
	return made
}

type none struct{}

func newWorld(t *testing.T, root *agent.Agent, all ...tools.Tool) *world {
	t.Helper()
	return newWorldWith(t, callbacks.Set{}, root, all...)
}

func newWorldWith(t *testing.T, set callbacks.Set, root *agent.Agent, all ...tools.Tool) *world {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tarry.db")
	s, err := store.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	w := &world{t: t, store: s, path: path, toolsets: tarrytest.Toolsets{}, log: &buffer{}}
	def := &agent.Definition{App: "app", Root: root}
	require.NoError(t, def.Validate())
	require.NoError(t, s.Publish(t.Context(), def))
	hash, err := def.Hash()
	require.NoError(t, err)
	registry, err := tools.NewRegistry(all...)
	require.NoError(t, err)
	builtins, err := tools.NewRegistry(builtin.All()...)
	require.NoError(t, err)
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(t.TempDir(), "keyset.json"), Checks: s})
	require.NoError(t, err)
	w.inputs = &inputs.Service{Store: s, Vault: v, Log: slog.New(slog.DiscardHandler)}
	m := models.NewRegistry()
	for _, provider := range []string{"test", "openai"} {
		require.NoError(t, m.Register(provider, func(context.Context, string) (models.Model, error) { return worldModel{w}, nil }))
	}
	w.acts, err = activities.New(activities.Config{
		Log: s, Partials: s, PartialEvery: time.Nanosecond, Definitions: s, Listings: s, Requests: s, Artifacts: s, Memory: s, Models: m, Callbacks: set, Functions: registry, Builtins: builtins, Toolsets: &w.toolsets,
		Broker: func(owner agent.Owner, _ activities.Use, scrub *auth.Scrubber) auth.Broker {
			return w.credentials.Broker(owner, scrub)
		},
		Inputs: w.inputs,
		Link:   func(r auth.Request) string { return "https://tarry.example/connect?request=" + r.ID },
		Now:    time.Now, Slog: slog.New(slog.NewJSONHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})), MaxResult: 4096,
		Fault: func(_ context.Context, point string) {
			if w.at != nil {
				w.at(point)
			}
		},
	})
	require.NoError(t, err)
	w.row = session.Session{Owner: agent.Owner{App: "app", User: "ann"}, ID: "s", WorkflowID: workflowID, Mode: string(wire.ModeChat), Definition: hash}
	require.NoError(t, s.Create(t.Context(), w.row))
	return w
}

// worldModel answers what the test says, word by word to who streams. A text that ends with "…" breaks off there, and passes.
type worldModel struct{ w *world }

func (m worldModel) GenerateContent(ctx context.Context, r *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		for response, err := range scripted.Func(m.w.model).GenerateContent(ctx, r, stream) {
			if err == nil && response != nil && response.Content != nil && len(response.Content.Parts) > 0 && strings.HasSuffix(response.Content.Parts[0].Text, "…") {
				yield(nil, &models.Error{Kind: models.KindNetwork, Provider: "test"})
				return
			}
			if !yield(response, err) {
				return
			}
		}
	}
}

// crash makes the first attempt that reaches a point end there, as if its process had been killed.
func (w *world) crash(point string) {
	done := false
	w.at = func(at string) {
		if at == point && !done {
			done = true
			panic("killed")
		}
	}
}

// do runs one activity under an id, with up to attempts attempts. The same id again is a repeat of the same activity.
func (w *world) do(activity, id string, attempts int32, in, out any) error {
	w.t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(20 * time.Second)
	env.SetWorkerOptions(worker.Options{MaxHeartbeatThrottleInterval: time.Second, DefaultHeartbeatThrottleInterval: time.Second})
	w.acts.Register(env)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			ActivityID: id, StartToCloseTimeout: time.Minute, HeartbeatTimeout: 3 * time.Second,
			RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: attempts, NonRetryableErrorTypes: []string{wire.ErrorFinal}},
		})
		return workflow.ExecuteActivity(ctx, activity, in).Get(ctx, out)
	})
	return env.GetWorkflowError()
}

const many = 20

// must runs an activity that succeeds, and runs it again: both give the same.
func must[Out any](w *world, activity, id string, in any) (out Out) {
	w.t.Helper()
	require.NoError(w.t, w.do(activity, id, many, in, &out))
	before := len(w.events())
	var again Out
	require.NoError(w.t, w.do(activity, id, many, in, &again))
	require.Equal(w.t, out, again, "an activity that is repeated gives the same")
	require.Len(w.t, w.events(), before, "and stores nothing more")
	return out
}

func (w *world) events() []*session.Record {
	w.t.Helper()
	all, err := w.store.Events(w.t.Context(), w.row, nil)
	require.NoError(w.t, err)
	return all
}

func (w *world) event(id string) *session.Record {
	w.t.Helper()
	found, err := w.store.Events(w.t.Context(), w.row, []string{id})
	require.NoError(w.t, err)
	require.Len(w.t, found, 1)
	return found[0]
}

// state replaces the session by a new one that begins with state.
func (w *world) state(initial map[string]any) {
	w.t.Helper()
	require.NoError(w.t, w.store.Delete(w.t.Context(), w.row.Owner, w.row.ID))
	w.row.Initial = initial
	require.NoError(w.t, w.store.Create(w.t.Context(), w.row))
}

// says posts a message and takes it.
func (w *world) says(text string) wire.TakeResult {
	w.t.Helper()
	n := len(w.events())
	m := session.Message{ID: fmt.Sprintf("in-%d", n), Invocation: fmt.Sprintf("inv-%d", n), Event: session.Event{Content: genai.NewContentFromText(text, genai.RoleUser)}, Streaming: w.streaming}
	require.NoError(w.t, w.store.Post(w.t.Context(), w.row.Owner, w.row.ID, w.row.Definition, w.row.Mode, m))
	return must[wire.TakeResult](w, wire.ActivityTake, fmt.Sprintf("take-%d", n), wire.TakeInput{})
}

// calls makes the model call tools and returns the calls.
func (w *world) calls(names ...string) wire.ModelResult {
	w.t.Helper()
	took := w.says("Do it.")
	w.model = func(context.Context, *models.Request) (*models.Response, error) { return calling(names...), nil }
	return must[wire.ModelResult](w, wire.ActivityCallModel, "model", wire.ModelInput{Agent: w.agent(), Heads: []string{took.Event}})
}

func (w *world) agent() string {
	d, err := w.store.Definition(w.t.Context(), w.row.Definition)
	require.NoError(w.t, err)
	return d.Root.Name
}

func calling(names ...string) *models.Response {
	c := &genai.Content{Role: genai.RoleModel}
	for _, name := range names {
		c.Parts = append(c.Parts, &genai.Part{FunctionCall: &genai.FunctionCall{Name: name, Args: map[string]any{"n": 1.0}}})
	}
	return &models.Response{Content: c}
}

func answering(text string) *models.Response {
	return &models.Response{Content: genai.NewContentFromText(text, genai.RoleModel)}
}

// response is what the model hears of a call.
func (w *world) response(event string) map[string]any {
	w.t.Helper()
	e := w.event(event)
	require.Len(w.t, e.Responses(), 1)
	return e.Responses()[0].Response
}

func failure(t *testing.T, err error) *temporal.ApplicationError {
	t.Helper()
	var e *temporal.ApplicationError
	require.ErrorAs(t, err, &e)
	return e
}

var errAny = errors.New("any")
