package tarrytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genai"

	"tarry"
	"tarry/activities"
	"tarry/agent"
	"tarry/agent/yaml"
	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/vault"
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
	quiet := slog.New(slog.DiscardHandler)
	v, err := vault.Open(ctx, vault.Config{KeysetFile: filepath.Join(tb.TempDir(), "keyset.json"), Checks: s})
	if err != nil {
		return nil, wire.SessionInput{}, fmt.Errorf("open vault: %w", err)
	}
	r := &Run{
		t: tb, short: o.short, agents: app.CustomAgents, store: s, row: row, done: make(chan struct{}), credentials: o.credentials,
		inputs: &inputs.Service{Store: s, Vault: v, Log: quiet},
		pauses: &pauses{Log: s, paused: make(chan struct{}), resume: make(chan struct{})},
	}
	if err := r.register(app, def, functions, o); err != nil {
		return nil, wire.SessionInput{}, err
	}
	r.begin(time.Now())
	s.SetClock(r.now)
	first := r.env.Load()
	first.RegisterDelayedCallback(func() { first.SignalWorkflow(wire.SignalMessage, wire.Message{Inbox: message.ID}) }, 0)
	return r, wire.SessionInput{Definition: hash, Plan: def.Plan(), Mode: wire.ModeJob}, nil
}

func (r *Run) register(app tarry.App, def *agent.Definition, functions *tools.Registry, o options) error {
	builtins, err := tools.NewRegistry(builtin.All()...)
	if err != nil {
		return fmt.Errorf("register built-in tools: %w", err)
	}
	registry, err := modelsOf(app, def, o)
	if err != nil {
		return err
	}
	r.activities, err = activities.New(activities.Config{
		Log: r.pauses, Definitions: r.store, Listings: r.store, Artifacts: r.store, Memory: r.store, Requests: logins{r.store, o.credentials}, Inputs: r.inputs, Models: registry, Callbacks: app.Callbacks,
		Functions: functions, Builtins: builtins, Toolsets: o.toolsets,
		Broker: func(owner agent.Owner, _ activities.Use, scrub *auth.Scrubber) auth.Broker {
			return o.credentials.Broker(owner, scrub)
		},
		Link: func(q auth.Request) string { return q.Link("https://tarry.example") },
		Now:  r.now,
		Slog: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return fmt.Errorf("set up activities: %w", err)
	}
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
