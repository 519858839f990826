// Command story is a worker with a custom agent: the story flow of ADK's documentation, with a person's login in the middle.
// It stands in for Tarry's worker; the server and the command line are used as they are.
//
//	GUIDES_URL=https://guides.example GUIDES_AUTHORIZE_URL=… GUIDES_TOKEN_URL=… GUIDES_CLIENT_ID=… go run .
//	starter run story "A story, please."
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
		fmt.Fprintln(os.Stderr, "story:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	guides, err := guidesFromEnv(os.LookupEnv)
	if err != nil {
		return err
	}
	app, err := newApp(guides, &http.Client{Timeout: 30 * time.Second})
	if err != nil {
		return err
	}
	temporal, err := envconfig.LoadDefaultClientOptions() // TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, …
	if err != nil {
		return fmt.Errorf("read Temporal configuration: %w", err)
	}
	return tarry.Run(ctx, app, temporal, os.LookupEnv, slog.New(slog.NewJSONHandler(os.Stderr, nil)))
}
