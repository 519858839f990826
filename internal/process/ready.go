package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 5 * time.Second
	maxHeader     = 64 << 10 // bytes: a token and a few cookies
)

// Serve listens on addr, prints "ready URL" to out once it does, and serves handler until ctx ends. Open streams get a few
// seconds; clients come back with the id of the last event that they saw.
func Serve(ctx context.Context, addr string, handler http.Handler, out io.Writer, log *slog.Logger) error {
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; is another instance running?", addr, err)
	}
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, IdleTimeout: idleTimeout, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	fmt.Fprintf(out, "ready http://%s\n", listener.Addr())
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	if err := server.Shutdown(drain); errors.Is(err, context.DeadlineExceeded) {
		return server.Close() //nolint:wrapcheck // nothing can be done about it
	}
	return nil
}
