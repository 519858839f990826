// Command reports is a worker of one's own: an agent written in Go, with a Go tool that needs a person's login and a model
// of its own. It stands in for Tarry's worker; the server and the command line are used as they are.
//
//	REPORTS_URL=https://reports.example REPORTS_AUTHORIZE_URL=… REPORTS_TOKEN_URL=… REPORTS_CLIENT_ID=… go run .
//	starter run reports "What does the report on spring say?"
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"go.temporal.io/sdk/contrib/envconfig"

	"tarry"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "reports:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	service, err := serviceFromEnv(os.LookupEnv)
	if err != nil {
		return err
	}
	app, err := newApp(service, &http.Client{Timeout: 30 * time.Second})
	if err != nil {
		return err
	}
	temporal, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, …
	if err != nil {
		return fmt.Errorf("read Temporal configuration: %w", err)
	}
	return tarry.Run(ctx, app, temporal, os.LookupEnv, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
}
