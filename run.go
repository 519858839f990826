package tarry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// Run runs a worker until ctx ends: the main function of a program of one's own. temporal says where Temporal is, lookup gives
// the variables that [Variables] lists, the same as the server's. The error is nil when the worker has stopped because ctx ended.
func Run(ctx context.Context, app App, temporal client.Options, lookup func(string) (string, bool), logger *slog.Logger) (err error) {
	config, err := ConfigFromEnv(lookup)
	if err != nil {
		return err
	}
	temporal.Logger = log.NewStructuredLogger(logger)
	config.Client, err = client.DialContext(ctx, temporal)
	if err != nil {
		return fmt.Errorf("connect to Temporal: %w", err)
	}
	defer config.Client.Close()
	config.Log = logger
	worker, err := NewWorker(ctx, app, config)
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
