package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"tarry"
	"tarry/cmd/internal/dial"
	"tarry/engine"
	"tarry/internal/metrics"
	"tarry/internal/process"
	"tarry/internal/wiring"
	"tarry/server"
	"tarry/server/signin"
)

func serve(ctx context.Context, lookup func(string) (string, bool), stdout, stderr io.Writer) (err error) {
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
	addr := get("TARRY_HTTP_ADDR", "127.0.0.1:8080")
	if err := onLoopback(addr, c.PublicURL); err != nil {
		return err
	}
	fault := process.Fault(lookup)
	parts, err := wiring.Open(ctx, wiring.Config{
		DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, SecretsDir: c.SecretsDir, LookupEnv: lookup, PublicURL: c.PublicURL,
		Dev: c.Dev, AllowCIDRs: c.AllowCIDRs, Log: log, Fault: fault,
	})
	if err != nil {
		return fmt.Errorf("set up server: %w", err)
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	counted := metrics.New()
	client, err := dial.Lazy(log, counted)
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	defer client.Close()
	after, err := strconv.Atoi(get("TARRY_CONTINUE_AFTER", "0"))
	if err != nil {
		return fmt.Errorf("TARRY_CONTINUE_AFTER: not a number of events: %w", err)
	}
	options, err := dial.Options()
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	e, err := engine.New(engine.Config{Client: client, Namespace: options.Namespace, TaskQueue: c.TaskQueue, UserKey: parts.UserKey, Dev: c.Dev, ContinueAfter: after})
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	s, err := server.New(server.Config{
		Parts: parts, Engine: e, PublicURL: c.PublicURL, SignIn: signin.None{Port: port(c.PublicURL), Log: log}, Version: version, Log: log, Metrics: counted.HTTP(),
	})
	if err != nil {
		return fmt.Errorf("set up server: %w", err)
	}
	announce(ctx, log, s)
	var group sync.WaitGroup
	background, stop := context.WithCancel(ctx)
	defer group.Wait()
	defer stop()
	group.Go(func() { s.Run(background) })
	if err := process.Serve(ctx, addr, s.Handler(), stdout, log); err != nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	return nil
}

const version = "0.1.0"

// onLoopback refuses what sign-in mode none cannot protect.
func onLoopback(addr string, public *url.URL) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("TARRY_HTTP_ADDR: %q is not HOST:PORT", addr)
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("TARRY_HTTP_ADDR: %q is not loopback, and without sign-in anybody who reaches it would be the operator; use 127.0.0.1", addr)
	}
	name := public.Hostname()
	if ip := net.ParseIP(name); name != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("TARRY_PUBLIC_URL: %q is not on loopback, which is all that a server without sign-in serves", public)
	}
	return nil
}

func port(public *url.URL) int {
	n, err := strconv.Atoi(public.Port())
	if err == nil {
		return n
	}
	if public.Scheme == "https" {
		return 443
	}
	return 80
}

// announce says what an operator registers at providers.
func announce(ctx context.Context, log *slog.Logger, s *server.Server) {
	uris, err := s.RedirectURIs(ctx)
	if err != nil {
		log.WarnContext(ctx, "list redirect URIs", "err", err)
		return
	}
	for _, u := range uris {
		log.InfoContext(ctx, "register this redirect URI at the provider", "app", u.App, "provider", u.Issuer, "redirect_uri", u.URI)
	}
}

func usage() string {
	var b strings.Builder
	b.WriteString("Usage: server\n\nServes the API, the connect pages and the OAuth callback. Configuration is read from the environment:\n\n")
	vars := tarry.Variables()
	for _, workers := range []string{"TARRY_AGENTS_DIR", "TARRY_VARS", "TARRY_ALLOW_STDIO", "TARRY_SCRIPTS_DIR", "TARRY_SCRIPT_JOURNAL"} {
		delete(vars, workers)
	}
	vars["TARRY_HTTP_ADDR"] = "address to listen on (default 127.0.0.1:8080)"
	vars["TARRY_CONTINUE_AFTER"] = "history events after which runs continue as new (default 0: when Temporal suggests it)"
	vars["TARRY_LOG_LEVEL"] = "debug, info, warn or error (default info)"
	vars["TARRY_LOG_FORMAT"] = "json or text (default json)"
	vars["TEMPORAL_ADDRESS"] = "Temporal frontend (default 127.0.0.1:7233); TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and the TLS variables of Temporal's environment configuration work too"
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, vars[name])
	}
	return b.String()
}
