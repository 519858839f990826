package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// runRounds runs the scenarios, size at a time; those without logins first, where no worker is killed.
func runRounds(ctx context.Context, s *suite, svc *service, r *report, scenarios []scenario, size int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-svc.Failed():
			cancel(err)
		case <-ctx.Done():
		}
	}()
	var plain, asking []scenario
	for _, sc := range scenarios {
		if sc.asks() {
			asking = append(asking, sc)
		} else {
			plain = append(plain, sc)
		}
	}
	for _, list := range [][]scenario{plain, asking} {
		for round := range slices.Chunk(list, size) {
			if err := runRound(ctx, s, svc, r, round); err != nil {
				return err
			}
			if err := context.Cause(ctx); err != nil {
				return fmt.Errorf("run scenarios: %w", err)
			}
		}
	}
	return nil
}

// runRound runs scenarios at the same time.
func runRound(ctx context.Context, s *suite, svc *service, r *report, round []scenario) error {
	names := make([]string, len(round))
	for i, sc := range round {
		names[i] = sc.id()
	}
	b := newBarrier(svc.meet, names)
	c, err := newControl(ctx, b)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, sc := range round {
		all.Go(func() {
			begun := time.Now()
			passed, output, err := s.run(ctx, sc, svc.results(), environment(svc, c, sc))
			b.leave(ctx, sc.id())
			if err != nil {
				output += "\n" + err.Error()
			}
			file := filepath.Join(svc.results(), sc.id()+".txt")
			if err := os.WriteFile(file, []byte(output), 0o600); err != nil {
				output += "\n" + err.Error()
			}
			r.add(sc, passed, time.Since(begun), output)
		})
	}
	all.Wait()
	for _, port := range c.seen() {
		svc.hold(ctx, port)
	}
	return c.close()
}

// control is how clients reach the barrier: this process listens on loopback.
type control struct {
	server *http.Server
	url    string
	ended  chan error

	mu    sync.Mutex
	ports []string
}

func newControl(ctx context.Context, b *barrier) (*control, error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for clients: %w", err)
	}
	c := &control{url: "http://" + l.Addr().String(), ended: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /arrive", func(w http.ResponseWriter, req *http.Request) {
		q := req.URL.Query()
		c.mu.Lock()
		c.ports = append(c.ports, q["port"]...)
		c.mu.Unlock()
		if err := b.arrive(req.Context(), q.Get("member"), point(q.Get("point"))); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("POST /leave", func(_ http.ResponseWriter, req *http.Request) {
		b.leave(context.WithoutCancel(req.Context()), req.URL.Query().Get("member"))
	})
	c.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { c.ended <- c.server.Serve(l) }()
	return c, nil
}

// seen returns the ports of the servers that the clients have named.
func (c *control) seen() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.ports)
	return slices.Compact(c.ports)
}

func (c *control) close() error {
	err := c.server.Close()
	if serve := <-c.ended; !errors.Is(serve, http.ErrServerClosed) {
		err = errors.Join(err, serve)
	}
	if err != nil {
		return fmt.Errorf("stop listening for clients: %w", err)
	}
	return nil
}
