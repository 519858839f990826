package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"tarry/devserver/internal/datafile"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const stopTimeout = 4 * time.Second

// Server is a Temporal server that runs in this process. Start one at most: the server's packages keep global state.
type Server struct {
	addr   string
	file   string
	lock   *datafile.Lock
	server temporal.Server
	logger logger
	// stopping is shared with the handler of logger.
	stopping *atomic.Bool
	own      *slog.Logger
}

// Start returns when a probe workflow has completed, or with an error that a user can act on.
func Start(ctx context.Context, o Options, log *slog.Logger) (*Server, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	// The server exports traces where this variable says so; it is often set for the programs under development.
	if err := os.Unsetenv("OTEL_TRACES_EXPORTER"); err != nil {
		return nil, fmt.Errorf("switch traces off: %w", err)
	}
	stopping := &atomic.Bool{}
	s := &Server{
		logger:   logger{handler: quietHandler{Handler: log.Handler(), stopping: stopping}},
		stopping: stopping,
		own:      log,
	}
	if err := s.start(ctx, o); err != nil {
		s.Stop(ctx)
		return nil, err
	}
	return s, nil
}

// Addr is the address of the frontend.
func (s *Server) Addr() string { return s.addr }

// Stop ends the server in an orderly way if that takes at most a few seconds. What it has acknowledged is on disk either
// way. It works after ctx is done.
func (s *Server) Stop(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.stopping.Store(true)
	if s.server != nil && !s.stopServices(ctx) {
		return // the services may still write; the lock goes with the process
	}
	if s.server != nil && s.file != "" {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if err := datafile.Checkpoint(ctx, s.file); err != nil {
			s.own.WarnContext(ctx, "data file left with its log", "err", err)
		}
	}
	if s.lock != nil {
		s.lock.Release()
	}
}

func (s *Server) start(ctx context.Context, o Options) error {
	if err := s.openFile(o.File); err != nil {
		return err
	}
	ports, err := choosePorts(ctx, o)
	if err != nil {
		return err
	}
	s.addr = hostPort(o.IP, ports[primitives.FrontendService])
	if o.Claimed != nil {
		if err := o.Claimed(); err != nil {
			return err
		}
	}
	if s.file != "" {
		if err := datafile.Prepare(ctx, s.file, headers.ServerVersion, setupSchema); err != nil {
			return fmt.Errorf("data file: %w", err)
		}
	}
	store := sqlConfig(s.file)
	if err := ensureNamespace(ctx, store, o, s.logger); err != nil {
		return err
	}
	if s.server, err = newServer(o, store, ports, s.logger); err != nil {
		return err
	}
	if err := s.server.Start(); err != nil {
		return fmt.Errorf("start Temporal server: %w", err)
	}
	return probe(ctx, s.addr, o)
}

// openFile takes the lock before anything in the file is looked at.
func (s *Server) openFile(file string) (err error) {
	if file == "" {
		return nil
	}
	if s.file, err = datafile.Resolve(file); err != nil {
		return fmt.Errorf("data file: %w", err)
	}
	if s.lock, err = datafile.Acquire(s.file); err != nil {
		return fmt.Errorf("data file: %w", err)
	}
	return nil
}

// stopServices reports whether they stopped in time.
func (s *Server) stopServices(ctx context.Context) bool {
	stopped := make(chan error, 1)
	go func() { stopped <- s.server.Stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			s.own.WarnContext(ctx, "stopped with an error", "err", err)
		}
		return err == nil
	case <-time.After(stopTimeout):
		s.own.WarnContext(ctx, "stop takes too long; the process ends without it")
		return false
	}
}

func newServer(
	o Options, store *config.SQL, ports map[primitives.ServiceName]int, log logger,
) (temporal.Server, error) {
	server, err := temporal.NewServer(
		temporal.WithConfig(serverConfig(o, store, ports)),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(staticHosts(o.IP, ports)),
		temporal.WithLogger(log),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
		temporal.WithDynamicConfigClient(dynamicConfig(o.DynamicConfig)),
	)
	if err != nil {
		return nil, fmt.Errorf("configure Temporal server: %w", err)
	}
	return server, nil
}
