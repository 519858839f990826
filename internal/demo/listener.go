package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// listener serves a handler on a loopback port and can be started again on the same one.
type listener struct {
	mu   sync.Mutex
	addr string // of the last start
	srv  *http.Server
	done chan struct{}
}

// start listens on addr; empty means the previous address or, the first time, a free loopback port. It returns the
// base URL.
func (l *listener) start(addr string, h http.Handler) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.srv != nil {
		return "", errors.New("server is running")
	}
	if addr == "" {
		addr = l.addr
	}
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	ln, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", addr)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		_ = ln.Close()
		return "", errors.New("the demo servers listen on loopback only")
	}
	l.addr = ln.Addr().String()
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	l.srv, l.done = srv, make(chan struct{})
	go func(done chan struct{}) {
		defer close(done)
		_ = srv.Serve(ln) // always an error, after Close
	}(l.done)
	return "http://" + l.addr, nil
}

// close drops the port and all connections at once, as a killed process would.
func (l *listener) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.srv == nil {
		return nil
	}
	err := l.srv.Close()
	<-l.done
	l.srv = nil
	if err != nil {
		return fmt.Errorf("close server: %w", err)
	}
	return nil
}

func (l *listener) running() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.srv != nil
}
