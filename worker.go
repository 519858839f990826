package tarry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/activities"
	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/internal/wiring"
	"tarry/tools"
	"tarry/tools/builtin"
	"tarry/tools/mcp"
	"tarry/wire"
)

// Worker runs sessions. Any number of workers may share a task queue and a database.
type Worker struct {
	temporal    worker.Worker
	parts       *wiring.Parts
	toolsets    *mcp.Opener
	definitions []*agent.Definition
	started     bool
}

// stopTimeout is how long a stopping worker lets activities end by themselves; it must be shorter than what the process's
// supervisor grants before it kills.
const stopTimeout = 10 * time.Second

// NewWorker opens the store, reads and checks the agents, and prepares a worker. Nothing runs before [Worker.Start].
func NewWorker(ctx context.Context, app App, c Config) (*Worker, error) {
	if c.Client == nil || c.Log == nil || c.PublicURL == nil {
		return nil, errors.New("tarry: Config needs Client, Log and PublicURL")
	}
	functions, err := tools.NewRegistry(app.Tools...)
	if err != nil {
		return nil, fmt.Errorf("register tools: %w", err)
	}
	definitions, err := app.definitions(c, functions)
	if err != nil {
		return nil, err
	}
	parts, err := wiring.Open(ctx, c.wiring())
	if err != nil {
		return nil, fmt.Errorf("set up worker: %w", err)
	}
	w := &Worker{parts: parts, definitions: definitions}
	if err := w.build(app, c, functions); err != nil {
		return nil, errors.Join(err, parts.Close())
	}
	return w, nil
}

func (w *Worker) build(app App, c Config, functions *tools.Registry) error {
	models, err := app.models(c, w.parts.HTTP.Streaming())
	if err != nil {
		return err
	}
	builtins, err := tools.NewRegistry(builtin.All()...)
	if err != nil {
		return fmt.Errorf("register built-in tools: %w", err)
	}
	w.toolsets, err = mcp.New(mcp.Config{
		HTTP: w.parts.HTTP.Patient(), Secrets: wiring.Secrets(c.SecretsDir, c.LookupEnv), ClientName: "tarry", ClientVersion: version(),
		AllowStdio: c.AllowStdio, StdioEnv: c.StdioEnv, AllowLoopback: c.Dev, Log: c.Log,
	})
	if err != nil {
		return fmt.Errorf("set up MCP: %w", err)
	}
	acts, err := activities.New(activities.Config{
		Log: w.parts.Store, Definitions: w.parts.Store, Listings: w.parts.Store, Requests: w.parts.Store, Artifacts: w.parts.Store, Memory: w.parts.Store,
		Inputs: w.parts.Inputs, Partials: w.parts.Store,
		Models: models, Callbacks: app.Callbacks, Functions: functions, Builtins: builtins, Toolsets: w.toolsets,
		Broker: func(owner agent.Owner, use activities.Use, scrub *auth.Scrubber) auth.Broker {
			return w.parts.Keys.Broker(w.parts.Logins.Broker(owner, oauth.Use(use), scrub), owner, oauth.Use(use), scrub)
		},
		Link: func(r auth.Request) string { return r.Link(c.PublicURL.String()) },
		Now:  time.Now, Slog: c.Log, Fault: c.Fault,
	})
	if err != nil {
		return fmt.Errorf("set up activities: %w", err)
	}
	queue := c.TaskQueue
	if queue == "" {
		queue = wire.TaskQueue
	}
	w.temporal = worker.New(c.Client, queue, worker.Options{
		Identity:                         "w" + rand.Text()[:6], // it stands in every started event
		WorkerStopTimeout:                stopTimeout,
		MaxHeartbeatThrottleInterval:     time.Second, // a cancellation reaches a tool by the answer to a heartbeat
		DefaultHeartbeatThrottleInterval: time.Second,
	})
	w.temporal.RegisterWorkflowWithOptions(app.CustomAgents.Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
	acts.Register(w.temporal)
	return nil
}

// Definitions lists the agents that the worker runs.
func (w *Worker) Definitions() []*agent.Definition { return w.definitions }

// Start publishes the agents and begins to poll.
func (w *Worker) Start(ctx context.Context) error {
	for _, d := range w.definitions {
		if err := w.parts.Store.Publish(ctx, d); err != nil {
			return fmt.Errorf("publish %s: %w", d.App, err)
		}
	}
	if err := w.temporal.Start(); err != nil {
		return fmt.Errorf("start worker: %w", err)
	}
	w.started = true
	return nil
}

// Ready says whether the store answers.
func (w *Worker) Ready(ctx context.Context) error {
	if err := w.parts.Store.Ping(ctx); err != nil {
		return fmt.Errorf("worker is not ready: %w", err)
	}
	return nil
}

// Stop lets running activities end, then closes everything. A worker that was never started may be stopped too. Call it once.
func (w *Worker) Stop() error {
	if w.started {
		w.temporal.Stop()
	}
	err := w.toolsets.Close()
	return errors.Join(err, w.parts.Close())
}
