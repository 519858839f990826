// Command story is a worker with a custom agent: the story flow of ADK's documentation, with a person's login in the middle.
// It stands in for Tarry's worker; the server and the command line are used as they are.
//
//	GUIDES_URL=https://guides.example GUIDES_AUTHORIZE_URL=… GUIDES_TOKEN_URL=… GUIDES_CLIENT_ID=… go run .
//	starter run story "A story, please."
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"tarry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.LookupEnv); err != nil {
		fmt.Fprintln(os.Stderr, "story:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, lookup func(string) (string, bool)) (err error) {
	logger := slog.New(slog.NewJSONHandler(os.Stderr, nil))
	config, err := tarry.ConfigFromEnv(lookup) // TARRY_DATABASE_URL, TARRY_PUBLIC_URL, …: the same as the server's
	if err != nil {
		return err
	}
	service, err := guidesFromEnv(lookup)
	if err != nil {
		return err
	}
	app, err := newApp(service, &http.Client{Timeout: 30 * time.Second})
	if err != nil {
		return err
	}
	options, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, …
	if err != nil {
		return fmt.Errorf("read Temporal configuration: %w", err)
	}
	options.Logger = log.NewStructuredLogger(logger)
	temporal, err := client.DialContext(ctx, options)
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	config.Client, config.Log = temporal, logger
	worker, err := tarry.NewWorker(ctx, app, config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, worker.Stop()) }()
	if err := worker.Start(ctx); err != nil {
		return err
	}
	logger.InfoContext(ctx, "worker runs")
	<-ctx.Done()
	return nil
}
