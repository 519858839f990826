package tarrytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/genai"

	"tarry"
	"tarry/activities"
	"tarry/agent"
	"tarry/agent/yaml"
	"tarry/auth"
	"tarry/models"
	"tarry/session"
	"tarry/store"
	"tarry/tools"
	"tarry/tools/builtin"
	"tarry/wire"
)

const (
	workflowID = "default-test-workflow-id" // the test environment's
	sessionID  = "session"
	invocation = "invocation"
)

func build(tb testing.TB, app tarry.App, task string, o options) (*Run, wire.SessionInput, error) {
	tb.Helper()
	ctx := context.Background()
	functions, err := tools.NewRegistry(app.Tools...)
	if err != nil {
		return nil, wire.SessionInput{}, fmt.Errorf("register tools: %w", err)
	}
	def, err := choose(app, functions, o)
	if err != nil {
		return nil, wire.SessionInput{}, err
	}
	hash, err := def.Hash()
	if err != nil {
		return nil, wire.SessionInput{}, fmt.Errorf("definition: %w", err)
	}
	s, err := store.Open(ctx, filepath.Join(tb.TempDir(), "tarry.db"))
	if err != nil {
		return nil, wire.SessionInput{}, fmt.Errorf("open store: %w", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("tarrytest: close store: %v", err)
		}
	})
	o.owner.App = def.App
	row := session.Session{Owner: o.owner, ID: sessionID, WorkflowID: workflowID, Mode: string(wire.ModeJob), Initial: o.state}
	message := session.Message{ID: "inbox", Invocation: invocation, Event: session.Event{Content: genai.NewContentFromText(task, genai.RoleUser)}}
	if err := errors.Join(s.Publish(ctx, def), s.Create(ctx, row), s.Post(ctx, row.Owner, row.ID, hash, row.Mode, message)); err != nil {
		return nil, wire.SessionInput{}, fmt.Errorf("store session: %w", err)
	}
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	r := &Run{
		t: tb, env: suite.NewTestWorkflowEnvironment(), store: s, row: row, done: make(chan struct{}),
		questions: &questions{Requests: s, credentials: o.credentials},
		pauses:    &pauses{Log: s, paused: make(chan struct{}), resume: make(chan struct{})},
	}
	if err := r.register(app, def, functions, o); err != nil {
		return nil, wire.SessionInput{}, err
	}
	r.env.RegisterDelayedCallback(func() { r.env.SignalWorkflow(wire.SignalMessage, wire.Message{Inbox: message.ID}) }, 0)
	return r, wire.SessionInput{Definition: hash, Plan: def.Plan(), Mode: wire.ModeJob}, nil
}

func (r *Run) register(app tarry.App, def *agent.Definition, functions *tools.Registry, o options) error {
	builtins, err := tools.NewRegistry(builtin.ExitLoop(), builtin.RequestInput())
	if err != nil {
		return fmt.Errorf("register built-in tools: %w", err)
	}
	registry, err := modelsOf(app, def, o)
	if err != nil {
		return err
	}
	acts, err := activities.New(activities.Config{
		Log: r.pauses, Definitions: r.store, Listings: r.store, Requests: r.questions, Models: registry, Callbacks: app.Callbacks,
		Functions: functions, Builtins: builtins, Toolsets: o.toolsets,
		Broker: func(owner agent.Owner, _ activities.Use, scrub *auth.Scrubber) auth.Broker {
			return o.credentials.Broker(owner, scrub)
		},
		Link: func(q auth.Request) string { return "https://tarry.example/connect?request=" + q.ID },
		Now:  r.env.Now,
		Slog: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fmt.Errorf("set up activities: %w", err)
	}
	r.env.SetTestTimeout(patience)
	r.env.RegisterWorkflowWithOptions(app.CustomAgents.Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	acts.Register(r.env)
	return nil
}

// choose returns the definition that is to run.
func choose(app tarry.App, functions *tools.Registry, o options) (*agent.Definition, error) {
	all := app.Agents
	if o.agentsDir != "" {
		loaded, err := yaml.Load(o.agentsDir, yaml.Options{Functions: functions.Names(), Schemas: app.Schemas, Callbacks: app.Callbacks.All(), CustomAgents: app.CustomAgents.Names(), Vars: o.vars})
		if err != nil {
			return nil, fmt.Errorf("read agents: %w", err)
		}
		all = append(all[:len(all):len(all)], loaded...)
	}
	var names []string
	for _, d := range all {
		if err := d.Validate(); err != nil {
			return nil, fmt.Errorf("agent %s: %w", d.App, err)
		}
		if d.App == o.app || o.app == "" && len(all) == 1 {
			return d, nil
		}
		names = append(names, d.App)
	}
	return nil, fmt.Errorf("choose one of the apps %v with tarrytest.WithApp", names)
}

// modelsOf serves the names in the definition: by the option's model, or by the app's own.
func modelsOf(app tarry.App, def *agent.Definition, o options) (*models.Registry, error) {
	r := models.NewRegistry()
	factories := app.Models
	if o.model != nil {
		factories = map[string]models.Factory{}
		one := func(context.Context, string) (models.Model, error) { return o.model, nil } //nolint:unparam // a models.Factory
		for _, family := range []string{"gemini", "openai", "anthropic"} {
			factories[family] = one
		}
		for node := range def.All() {
			if prefix, _, ok := strings.Cut(node.Model, "/"); ok {
				factories[prefix] = one
			}
		}
	}
	for prefix, factory := range factories {
		if err := r.Register(prefix, factory); err != nil {
			return nil, fmt.Errorf("register model: %w", err)
		}
	}
	return r, nil
}
