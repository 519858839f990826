package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// Client is the address of whoever sent r: the connection's, or where that is one of the trusted proxies the last address of
// X-Forwarded-For that is not. What stands before it was written by the client itself. The zero Addr means that there is no
// telling.
func Client(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr := plainAddr(peer.Addr())
	if !Within(addr, trusted) {
		return addr
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, ok := hopAddr(hop)
		if !ok {
			return addr
		}
		if addr = next; !Within(addr, trusted) {
			return addr
		}
	}
	return addr
}

// hopAddr reads one element: an address, with or without a port.
func hopAddr(text string) (netip.Addr, bool) {
	text = strings.TrimSpace(text)
	if a, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil {
		return plainAddr(a), true
	}
	if a, err := netip.ParseAddrPort(text); err == nil {
		return plainAddr(a.Addr()), true
	}
	return netip.Addr{}, false
}

// ClientKey names a client for rate limits; of IPv6 the network, since one client has 2^64 addresses.
func ClientKey(r *http.Request, trusted []netip.Prefix) string {
	addr := Client(r, trusted)
	if !addr.IsValid() {
		return "unknown"
	}
	if addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}

// Within says whether one of the ranges has addr. An IPv4 address that is written as IPv6 is the IPv4 address.
func Within(addr netip.Addr, ranges []netip.Prefix) bool {
	addr = plainAddr(addr)
	return slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(addr) })
}

func plainAddr(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
