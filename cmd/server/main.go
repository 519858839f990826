// Command server is Tarry's HTTP side: the API, the connect pages, the OAuth callback and the outbox. It keeps no state:
// any number may run beside each other.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	if len(args) > 0 {
		fmt.Fprint(stderr, usage())
		if args[0] == "-h" || args[0] == "--help" {
			return 0
		}
		return 2
	}
	if err := serve(ctx, lookup, stdout, stderr); err != nil {
		fmt.Fprintln(stderr, "server:", err)
		return 1
	}
	return 0
}
