package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"tarry"
	"tarry/auth/kms"
	"tarry/cmd/internal/dial"
	"tarry/engine"
	"tarry/internal/metrics"
	"tarry/internal/process"
	"tarry/internal/wiring"
	"tarry/server"
)

func serve(ctx context.Context, e process.Environment) (err error) {
	c, err := tarry.ConfigFromEnv(e.Lookup)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	addr := address(e)
	signIn, proxies, err := signInSettings(e, c.PublicURL, addr)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	rates, retention, err := limits(e)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	origins, err := allowOrigins(e)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	ui, err := webUI(e)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	parts, err := wiring.Open(ctx, wiring.Config{
		DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, Keyset: c.Keyset, KMS: kms.Clients(e.Lookup), SecretsDir: c.SecretsDir, LookupEnv: e.Lookup, PublicURL: c.PublicURL,
		ClientMetadataURL: c.ClientMetadataURL, Dev: c.Dev, AllowCIDRs: c.AllowCIDRs, MaxArtifacts: c.MaxArtifacts, Log: e.Log, Fault: process.Fault(e.Lookup),
	})
	if err != nil {
		return fmt.Errorf("set up server: %w", err)
	}
	defer func() { err = errors.Join(err, parts.Close()) }()
	counted := metrics.New()
	client, err := dial.Lazy(e.Log, counted)
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	defer client.Close()
	after, err := strconv.Atoi(e.Get("TARRY_CONTINUE_AFTER", "0"))
	if err != nil {
		return fmt.Errorf("TARRY_CONTINUE_AFTER: not a number of events: %w", err)
	}
	options, err := dial.Options()
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	steer, err := engine.New(engine.Config{Client: client, Namespace: options.Namespace, TaskQueue: c.TaskQueue, UserKey: parts.UserKey, Dev: c.Dev, ContinueAfter: after})
	if err != nil {
		return fmt.Errorf("set up engine: %w", err)
	}
	mode := noSignIn(c.PublicURL, origins, e.Log)
	if signIn != nil {
		signIn.Origins = origins
		if mode, err = server.SignIn(parts, *signIn); err != nil {
			return err //nolint:wrapcheck // says what it is
		}
	}
	hooks, err := webhooks(ctx, e, c, parts)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	s, err := server.New(server.Config{
		Webhooks: hooks, WebUI: ui, Parts: parts, Engine: steer, PublicURL: c.PublicURL, SignIn: mode, Proxies: proxies, Origins: origins, Version: version, Log: e.Log, Metrics: counted.HTTP(), Rates: rates, Retention: retention,
		APIPrefix: e.Get(prefixVariable, ""),
		ReturnTo:  split(e.Get("TARRY_RETURN_URLS", "")),
	})
	if err != nil {
		return fmt.Errorf("set up server: %w", err)
	}
	var group sync.WaitGroup
	background, stop := context.WithCancel(ctx)
	defer group.Wait()
	defer stop()
	group.Go(func() { s.Run(background) })
	if err := process.Serve(ctx, addr, s.Handler(), e.Stdout, e.Log); err != nil {
		return fmt.Errorf("HTTP: %w", err)
	}
	return nil
}

const version = "0.1.0"
