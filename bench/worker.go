package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime/pprof"
	"strings"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"tarry"
	"tarry/agent"
	"tarry/internal/process"
	"tarry/models/scripted"
	"tarry/tools"
	"tarry/tools/function"
)

// role of a process of this program.
type role string

const (
	roleWorker role = "worker"
	roleBare   role = "bare"
)

const (
	// perMessage is the most turns of one invocation; their number is limited.
	perMessage = 250
	toolName   = "read"
	agentName  = "assistant"
	resultSize = 2048
	envSizes   = "BENCH_TURNS"
	envProfile = "BENCH_PROFILE"
	// envIdempotent is empty for a tool that must not run twice.
	envIdempotent = "BENCH_IDEMPOTENT"
)

func workerUsage() string {
	return process.Usage("Tarry's worker of the benchmark, which starts it.", tarry.Variables())
}

// work is a worker of Tarry with the agents that are measured.
func work(ctx context.Context, e process.Environment) (err error) {
	c, err := tarry.ConfigFromEnv(e.Lookup)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	sizes, err := parseSizes(e.Get(envSizes, ""))
	if err != nil {
		return fmt.Errorf("%s: %w", envSizes, err)
	}
	app, err := newApp(c.ScriptsDir, sizes, e.Get(envIdempotent, "") != "")
	if err != nil {
		return err
	}
	c.Log = e.Log
	temporal, err := dial(ctx, e.Get("TEMPORAL_ADDRESS", ""), c)
	if err != nil {
		return err
	}
	defer temporal.Close()
	c.Client = temporal
	if path := e.Get(envProfile, ""); path != "" {
		stop, err := profile(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	w, err := tarry.NewWorker(ctx, app, c)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if err := process.Serve(ctx, e.Get("TARRY_ADMIN_ADDR", "127.0.0.1:0"), http.NotFoundHandler(), e.Stdout, e.Log); err != nil {
		return fmt.Errorf("admin address: %w", err)
	}
	return nil
}

// newApp makes an agent of each size: its model calls the tool so many times, then answers.
func newApp(scripts string, sizes []size, idempotent bool) (tarry.App, error) {
	type in struct {
		Page string `json:"page"`
	}
	text := strings.Repeat("x", resultSize)
	var opts []function.Option
	if idempotent {
		opts = append(opts, function.Idempotent())
	}
	read, err := function.New(toolName, "Reads a page.", func(context.Context, in) (string, error) { return text, nil }, opts...)
	if err != nil {
		return tarry.App{}, fmt.Errorf("make tool: %w", err)
	}
	app := tarry.App{Tools: []tools.Tool{read}}
	if err := os.MkdirAll(scripts, 0o700); err != nil {
		return app, fmt.Errorf("make scripts: %w", err)
	}
	for _, s := range sizes {
		script := fmt.Sprintf(`agents:
  - agent: %s
    steps:
      - {when: {turn: %d}, text: Done.}
      - {when: {}, calls: [{name: %s, args: {page: one}}]}
`, agentName, min(s.turns, perMessage)+1, toolName)
		if err := os.WriteFile(scripts+"/"+s.app()+".yaml", []byte(script), 0o600); err != nil {
			return app, fmt.Errorf("write script: %w", err)
		}
		app.Agents = append(app.Agents, &agent.Definition{App: s.app(), Root: &agent.Agent{
			Name: agentName, Kind: agent.KindLLM, Model: scripted.Provider + "/" + s.app(), Instruction: "Read the pages.",
			Tools: []agent.Tool{{Function: toolName}},
		}})
	}
	return app, nil
}

func (s size) app() string { return fmt.Sprintf("turns%d", s.turns) }

func dial(ctx context.Context, address string, c tarry.Config) (client.Client, error) {
	temporal, err := client.DialContext(ctx, client.Options{HostPort: address, ConnectionOptions: connection(), Logger: log.NewStructuredLogger(c.Log)})
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w", address, err)
	}
	return temporal, nil
}

// connection is that of the binaries on one machine (cmd/internal/dial), for both workers: what it saves is no merit of one of them.
func connection() client.ConnectionOptions {
	return client.ConnectionOptions{GrpcCompression: &client.GrpcCompressionNone{}}
}

func profile(path string) (stop func() error, err error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
