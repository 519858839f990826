package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"go.temporal.io/sdk/worker"

	"tarry"
	"tarry/auth/kms"
	"tarry/cmd/internal/dial"
	"tarry/internal/metrics"
	"tarry/internal/process"
)

// address is the admin listener's.
func address(e process.Environment) string { return e.Get("TARRY_ADMIN_ADDR", "127.0.0.1:8081") }

func work(ctx context.Context, e process.Environment) (err error) {
	c, err := tarry.ConfigFromEnv(e.Lookup)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if size, ok := e.Lookup("TARRY_STICKY_CACHE"); ok {
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 {
			return fmt.Errorf("TARRY_STICKY_CACHE: %q is not a number of workflows", size)
		}
		worker.SetStickyWorkflowCacheSize(n)
	}
	c.Log, c.Fault, c.KMS = e.Log, process.Fault(e.Lookup), kms.Clients(e.Lookup)
	counted := metrics.New()
	client, err := dial.Temporal(ctx, e.Log, counted)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer client.Close()
	c.Client = client
	a, err := app(e.Lookup)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	w, err := tarry.NewWorker(ctx, a, c)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for _, d := range w.Definitions() {
		e.Log.InfoContext(ctx, "agent published", "app", d.App)
	}
	if err := process.Serve(ctx, address(e), admin(w, counted), e.Stdout, e.Log); err != nil {
		return fmt.Errorf("admin address: %w", err)
	}
	return nil
}

func admin(w *tarry.Worker, counted *metrics.Handler) http.Handler {
	const patience = 2 * time.Second
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", counted.HTTP())
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprintln(rw, "ok") })
	mux.HandleFunc("GET /readyz", func(rw http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		if err := w.Ready(ctx); err != nil {
			http.Error(rw, "not ready", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(rw, "ready")
	})
	return mux
}
