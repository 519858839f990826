package mcp

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"tarry/agent"
	"tarry/auth"
)

// Defaults of a zero [Config]; those of a server's timeouts are ADK's.
const (
	DefaultConnectTimeout = 5 * time.Second
	DefaultReadTimeout    = 5 * time.Minute
	DefaultIdleTimeout    = 5 * time.Minute
)

// Config is what an [Opener] works with.
type Config struct {
	// HTTP is the guarded client for calls that stay open; its transport carries every request. Its redirect rule is not
	// used, as no redirect is followed. Required.
	HTTP *http.Client
	// Secrets resolves references in headers and variables, when a connection is opened. May be nil when no definition
	// has any.
	Secrets func(ctx context.Context, src agent.Source) (auth.Secret, error)
	// ClientName and ClientVersion are told to servers.
	ClientName    string
	ClientVersion string
	// IdleTimeout is how long a connection stays open without a call; 0 means DefaultIdleTimeout.
	IdleTimeout time.Duration
	// ConnectTimeout bounds connecting, and each listing, where the definition has no timeout of its own; 0 means
	// DefaultConnectTimeout. Time that a broker takes does not count.
	ConnectTimeout time.Duration
	// ReadTimeout bounds a server's silence during a call where the definition does not say; 0 means DefaultReadTimeout.
	ReadTimeout time.Duration
	// AllowStdio permits servers that are started as processes of this machine.
	AllowStdio bool
	// StdioEnv is the environment of such a process ("PATH=/usr/bin"), to which the definition's variables are added.
	// Nothing else is inherited.
	StdioEnv []auth.Secret
	// AllowLoopback permits servers to send a person to an http URL of this machine. For development and tests only.
	AllowLoopback bool
	// Log may be nil.
	Log *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	if c.HTTP == nil || c.HTTP.Transport == nil {
		return c, errors.New("mcp: an HTTP client with a transport of its own is required")
	}
	if c.ClientName == "" {
		c.ClientName = "tarry"
	}
	if c.ClientVersion == "" {
		c.ClientVersion = "0"
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.ReadTimeout <= 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c, nil
}
