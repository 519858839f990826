package safehttp

import (
	"net/netip"
	"strings"
)

// policy decides which addresses may be reached. It is read-only after New.
type policy struct {
	loopback bool
	allowed  []netip.Prefix
	refused  []refusal
}

// refusal is a range of addresses and the reason it is refused.
type refusal struct {
	prefix netip.Prefix
	reason string
}

func newPolicy(loopback bool, allowed []netip.Prefix) *policy {
	p := &policy{loopback: loopback, refused: refusals()}
	for _, a := range allowed {
		if !a.IsValid() {
			continue
		}
		p.allowed = append(p.allowed, a.Masked())
	}
	return p
}

// check returns why addr is refused, or "" if it may be reached. onlyLoopback is set for plain http.
func (p *policy) check(addr netip.Addr, onlyLoopback bool) string {
	// Prefix.Contains is false for an address with a zone, so fe80::1%eth0 would slip through.
	addr = addr.WithZone("")
	plain := addr.Unmap()
	if plain.IsLoopback() {
		switch {
		case !p.loopback:
			return "loopback address"
		case addr.Is4In6():
			return "IPv4-mapped IPv6 address"
		}
		return ""
	}
	if onlyLoopback {
		return "plain http to an address that is not loopback"
	}
	for _, a := range p.allowed {
		if a.Contains(addr) || a.Contains(plain) {
			return ""
		}
	}
	for _, r := range p.refused {
		if r.prefix.Contains(addr) || r.prefix.Contains(plain) {
			return r.reason
		}
	}
	if addr.Is4In6() {
		return "IPv4-mapped IPv6 address"
	}
	if !addr.IsGlobalUnicast() {
		return "address that is not global unicast"
	}
	return ""
}

// isLoopbackName reports whether host names loopback in the URL itself: RFC 6761 section 6.3, or a literal.
func isLoopbackName(host string) bool {
	h := strings.ToLower(strings.TrimSuffix(host, "."))
	if h == "localhost" || strings.HasSuffix(h, ".localhost") {
		return true
	}
	addr, err := netip.ParseAddr(h)
	return err == nil && addr.Unmap().IsLoopback()
}

// refusals lists what is never on the public internet (IANA special-purpose registries, RFC 6890) and what reaches
// inside from there. The first match gives the reason, so the narrow ones come first.
func refusals() []refusal {
	const (
		metadata   = "cloud metadata address"
		private    = "private address"
		linkLocal  = "link-local address"
		reserved   = "reserved address"
		translated = "address that embeds an IPv4 address"
	)
	rows := []struct{ cidr, reason string }{
		{"169.254.169.254/32", metadata},
		{"169.254.170.2/32", metadata}, // container credentials
		{"100.100.100.200/32", metadata},
		{"192.0.0.192/32", metadata},
		{"168.63.129.16/32", metadata}, // public space, but answered by the hypervisor
		{"fd00:ec2::254/128", metadata},
		{"fd20:ce::254/128", metadata},

		{"0.0.0.0/8", "unspecified address"}, // on many systems a way to say loopback
		{"10.0.0.0/8", private},
		{"172.16.0.0/12", private},
		{"192.168.0.0/16", private},
		{"100.64.0.0/10", "shared (CGNAT) address"},
		{"169.254.0.0/16", linkLocal},
		{"192.0.0.0/24", reserved},
		{"192.0.2.0/24", reserved},
		{"192.88.99.0/24", reserved},
		{"198.18.0.0/15", reserved},
		{"198.51.100.0/24", reserved},
		{"203.0.113.0/24", reserved},
		{"224.0.0.0/4", "multicast address"},
		{"240.0.0.0/4", reserved},

		{"::/128", "unspecified address"},
		{"::/96", translated},             // IPv4-compatible
		{"::ffff:0:0:0/96", translated},   // IPv4-translated, RFC 2765
		{"64:ff9b::/96", translated},      // NAT64
		{"64:ff9b:1::/48", translated},    // local-use NAT64, RFC 8215
		{"2001::/32", translated},         // Teredo
		{"2002::/16", translated},         // 6to4
		{"2001:db8::/32", reserved},       // documentation
		{"3fff::/20", reserved},           // documentation
		{"2001::/23", reserved},           // protocol assignments
		{"100::/64", reserved},            // discard
		{"5f00::/16", reserved},           // segment routing
		{"fc00::/7", private},             // unique local
		{"fe80::/10", linkLocal},          //
		{"fec0::/10", private},            // site-local, deprecated
		{"ff00::/8", "multicast address"}, //
	}
	out := make([]refusal, 0, len(rows))
	for _, r := range rows {
		out = append(out, refusal{netip.MustParsePrefix(r.cidr), r.reason})
	}
	return out
}
