package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"

	"go.temporal.io/server/common/primitives"
)

// Free ports are looked for below the range from which Linux (32768) and macOS (49152) give ports to outgoing connections
// and to listeners that ask for any, so that nothing takes one between the look and the listening.
const (
	firstFreePort = 20000
	lastFreePort  = 32767
)

func internalServices() []primitives.ServiceName {
	return []primitives.ServiceName{primitives.HistoryService, primitives.MatchingService, primitives.WorkerService}
}

// choosePorts returns the gRPC port of each service.
func choosePorts(ctx context.Context, o Options) (map[primitives.ServiceName]int, error) {
	ports := map[primitives.ServiceName]int{}
	var held []net.Listener
	defer func() {
		for _, listener := range held {
			_ = listener.Close()
		}
	}()
	choose := func(service primitives.ServiceName, port int, advice string) error {
		listener, err := listen(ctx, o.IP, port)
		if err != nil {
			return fmt.Errorf("port %d on %s is taken: stop what listens there, or %s (%w)", port, o.IP, advice, err)
		}
		held = append(held, listener)
		addr, ok := listener.Addr().(*net.TCPAddr)
		if !ok {
			return fmt.Errorf("listener of %s has no port", service)
		}
		ports[service] = addr.Port
		return nil
	}
	if err := choose(primitives.FrontendService, o.Port, "choose another with --port (0: a free one)"); err != nil {
		return nil, err
	}
	for i, service := range internalServices() {
		port := 0
		if o.InternalPort != 0 {
			port = o.InternalPort + i
		}
		if err := choose(service, port, "choose others with --internal-port (0: free ones)"); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// listen listens on the port, on a free one if it is 0.
func listen(ctx context.Context, ip string, port int) (net.Listener, error) {
	var config net.ListenConfig
	if port != 0 {
		return config.Listen(ctx, "tcp", hostPort(ip, port)) //nolint:wrapcheck // choosePorts adds the operation
	}
	for range 200 {
		port := firstFreePort + rand.IntN(lastFreePort-firstFreePort+1) //nolint:gosec // no secret depends on it
		if listener, err := config.Listen(ctx, "tcp", hostPort(ip, port)); err == nil {
			return listener, nil
		}
	}
	return nil, errors.New("no free port found")
}

func hostPort(ip string, port int) string {
	return net.JoinHostPort(ip, strconv.Itoa(port))
}
