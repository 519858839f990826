package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strconv"
)

const (
	host = "127.0.0.1"
	// Ports are taken from below the ranges that systems give to outgoing connections: one of those could otherwise get
	// the port of a process while that process is down.
	firstPort = 20000
	ports     = 12000
	tries     = 200
)

// ErrPortTaken says that a port that was asked for cannot be had.
var ErrPortTaken = errors.New("port is taken")

// reserve listens on a port so that nobody else gets it until the process that it is for starts.
func reserve(ctx context.Context, port int) (net.Listener, int, error) {
	var config net.ListenConfig
	if port != 0 {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return nil, 0, fmt.Errorf("%w: %w", ErrPortTaken, err)
		}
		return l, port, nil
	}
	for range tries {
		n, err := rand.Int(rand.Reader, big.NewInt(ports))
		if err != nil {
			return nil, 0, fmt.Errorf("choose port: %w", err)
		}
		port := firstPort + int(n.Int64())
		if l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port))); err == nil {
			return l, port, nil
		}
	}
	return nil, 0, errors.New("choose port: no free one found")
}
