package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"go.temporal.io/sdk/worker"

	"tarry/devserver/internal/embedded"
)

func main() {
	// Temporal's own workflows name the program that ran them; else the SDK reads all of it at every start for a checksum.
	worker.SetBinaryChecksum("devserver " + embedded.Version())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// After the first signal the default action is back, so that a second one ends a stop that hangs.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "devserver: %v\n", err)
		return 2
	case cfg.version:
		_, _ = fmt.Fprintln(stdout, embedded.Version())
		return 0
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: cfg.logLevel}))
	if err := serve(ctx, cfg, logger, stdout); err != nil {
		_, _ = fmt.Fprintf(stderr, "devserver: %v\n", err)
		return 1
	}
	return 0
}

// serve runs the server until ctx is done.
func serve(ctx context.Context, cfg config, logger *slog.Logger, stdout io.Writer) error {
	ready := readyFile(cfg.readyFile)
	// Not earlier: a server that is refused must not remove the file of the one that runs.
	cfg.server.Claimed = ready.remove
	server, err := embedded.Start(ctx, cfg.server, logger)
	switch {
	case ctx.Err() != nil && server == nil:
		return nil // told to stop before it was ready
	case err != nil:
		return err //nolint:wrapcheck // already says what could not be done, and is the whole line the user reads
	case ctx.Err() == nil:
		if err := ready.write(server.Addr()); err != nil {
			server.Stop(ctx)
			return err
		}
		_, _ = fmt.Fprintf(stdout, "ready %s\n", server.Addr())
	}
	<-ctx.Done()
	server.Stop(ctx)
	return ready.remove()
}
