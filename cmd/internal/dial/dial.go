// Package dial connects the binaries to Temporal, by Temporal's own environment configuration (TEMPORAL_ADDRESS,
// TEMPORAL_NAMESPACE, TEMPORAL_API_KEY, TLS). Only the commands use it.
package dial

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"
)

// Temporal dials what the environment names; the error names the address.
// Metrics may be nil.
func Temporal(ctx context.Context, logger *slog.Logger, metrics client.MetricsHandler) (client.Client, error) {
	options, err := Options()
	if err != nil {
		return nil, err
	}
	options.Logger, options.MetricsHandler = log.NewStructuredLogger(logger), metrics
	c, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal at %s: %w; set TEMPORAL_ADDRESS", options.HostPort, err)
	}
	return c, nil
}

// Options reads the environment.
func Options() (client.Options, error) {
	options, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return options, fmt.Errorf("read Temporal configuration: %w", err)
	}
	if options.HostPort == "" {
		options.HostPort = "127.0.0.1:7233"
	}
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	if onThisMachine(options.HostPort) {
		// To compress and decompress takes a tenth of a turn or more (bench/README.md), and spares no network anything.
		options.ConnectionOptions.GrpcCompression = &client.GrpcCompressionNone{}
	}
	return options, nil
}

func onThisMachine(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Lazy connects at the first call: a server starts, and takes callbacks, while Temporal is down. Metrics may be nil.
func Lazy(logger *slog.Logger, metrics client.MetricsHandler) (client.Client, error) {
	options, err := Options()
	if err != nil {
		return nil, err
	}
	options.Logger, options.MetricsHandler = log.NewStructuredLogger(logger), metrics
	c, err := client.NewLazyClient(options)
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return c, nil
}
