package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"

	"tarry"
	"tarry/cmd/internal/dial"
	"tarry/internal/metrics"
	"tarry/internal/process"
)

func work(ctx context.Context, lookup func(string) (string, bool), stdout, stderr io.Writer) (err error) {
	get := func(name, fallback string) string {
		if v, ok := lookup(name); ok && v != "" {
			return v
		}
		return fallback
	}
	log, err := process.Logger(stderr, get("TARRY_LOG_FORMAT", "json"), get("TARRY_LOG_LEVEL", "info"))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	c, err := tarry.ConfigFromEnv(lookup)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if size, ok := lookup("TARRY_STICKY_CACHE"); ok {
		n, err := strconv.Atoi(size)
		if err != nil || n < 0 {
			return fmt.Errorf("TARRY_STICKY_CACHE: %q is not a number of workflows", size)
		}
		worker.SetStickyWorkflowCacheSize(n)
	}
	c.Log, c.Fault = log, process.Fault(lookup)
	counted := metrics.New()
	client, err := dial.Temporal(ctx, log, counted)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer client.Close()
	c.Client = client
	w, err := tarry.NewWorker(ctx, tarry.App{}, c)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := w.Start(ctx); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	for _, d := range w.Definitions() {
		log.InfoContext(ctx, "agent published", "app", d.App)
	}
	if err := process.Serve(ctx, get("TARRY_ADMIN_ADDR", "127.0.0.1:8081"), admin(w, counted), stdout, log); err != nil {
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

func usage() string {
	var b strings.Builder
	b.WriteString("Usage: worker\n\nRuns workflows and activities. Configuration is read from the environment:\n\n")
	vars := tarry.Variables()
	vars["TARRY_ADMIN_ADDR"] = "address of /healthz, /readyz and /metrics (default 127.0.0.1:8081)"
	vars["TARRY_LOG_LEVEL"] = "debug, info, warn or error (default info)"
	vars["TARRY_LOG_FORMAT"] = "json or text (default json)"
	vars["TARRY_STICKY_CACHE"] = "workflows kept in memory (default 10000)"
	vars["GEMINI_API_KEY"] = "key of gemini/… models; GOOGLE_API_KEY works too"
	vars["GEMINI_BASE_URL"] = "address of the Gemini API, if it is another"
	vars["OPENAI_API_KEY"] = "key of openai/… models"
	vars["OPENAI_BASE_URL"] = "address of a server that speaks Chat Completions"
	vars["TEMPORAL_ADDRESS"] = "Temporal frontend (default 127.0.0.1:7233); TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and the TLS variables of Temporal's environment configuration work too"
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, vars[name])
	}
	return b.String()
}
