package safehttp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// Resolver turns a name into addresses. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// dialFunc connects to a literal ip:port.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialer resolves, checks and connects, in that order and to the address that was checked.
type dialer struct {
	policy       *policy
	resolver     Resolver
	timeout      time.Duration
	onlyLoopback bool
	connect      dialFunc
}

func newDialer(p *policy, r Resolver, timeout time.Duration, onlyLoopback bool) *dialer {
	d := &dialer{policy: p, resolver: r, timeout: timeout, onlyLoopback: onlyLoopback}
	nd := &net.Dialer{
		KeepAlive: 30 * time.Second,
		// Second line: whatever happens above, the socket itself never connects to a refused address.
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return &BlockedError{Reason: "address is not an IP address"}
			}
			if reason := p.check(ap.Addr(), onlyLoopback); reason != "" {
				return &BlockedError{Host: ap.Addr().String(), Reason: reason}
			}
			return nil
		},
	}
	d.connect = nd.DialContext
	return d
}

// DialContext implements the hook of http.Transport.
func (d *dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("split address: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	addrs, err := d.addresses(ctx, host)
	if err != nil {
		return nil, err
	}
	var errs []error
	for i, addr := range addrs {
		conn, err := d.connectOne(ctx, network, net.JoinHostPort(addr.String(), port), len(addrs)-i)
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("dial: %w", errors.Join(errs...))
}

// connectOne gives one address its share of the time that is left, so that a black hole does not use up the others'.
func (d *dialer) connectOne(ctx context.Context, network, address string, left int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(left))
		defer cancel()
	}
	return d.connect(ctx, network, address)
}

// addresses returns the addresses of host that may be reached, at least one.
func (d *dialer) addresses(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if reason := d.policy.check(addr, d.onlyLoopback); reason != "" {
			return nil, &BlockedError{Host: host, Reason: reason}
		}
		return []netip.Addr{addr}, nil
	}
	found, err := d.resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("resolve: %w", err)
	}
	var ok []netip.Addr
	reason := "name has no address"
	for _, addr := range found {
		// Resolvers answer IPv4 in mapped form too; what counts is the address that is dialled.
		addr = addr.Unmap()
		if r := d.policy.check(addr, d.onlyLoopback); r != "" {
			reason = "name resolves to a " + r
			continue
		}
		ok = append(ok, addr)
	}
	if len(ok) == 0 {
		return nil, &BlockedError{Host: host, Reason: reason}
	}
	return ok, nil
}
