package discovery

import (
	"net"
	"net/url"
	"slices"
	"strings"
)

// Canonical is the canonical URI of a server (RFC 8707 section 2, MCP authorization "Canonical Server URI"): scheme and
// host in lower case, no default port, no fragment, no slash after a bare origin. ok is false for what is no http(s) URL.
func Canonical(raw string) (canonical string, ok bool) {
	u, ok := parse(raw)
	if !ok {
		return "", false
	}
	if u.Path == "/" && u.RawQuery == "" {
		u.Path, u.RawPath = "", ""
	}
	return u.String(), true
}

// parse refuses what is not an absolute http(s) URL without user information, and drops the fragment.
func parse(raw string) (*url.URL, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || u.Opaque != "" {
		return nil, false
	}
	u.Scheme = strings.ToLower(u.Scheme)
	if u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	u.Host = strings.ToLower(u.Host)
	if p := u.Port(); p == "443" && u.Scheme == "https" || p == "80" && u.Scheme == "http" {
		u.Host = strings.TrimSuffix(u.Host, ":"+p)
	}
	u.Fragment, u.RawFragment, u.ForceQuery = "", "", false
	return u, true
}

// Resources lists the resource identifiers that a token for server may carry, the most specific first: the URL itself,
// with and without its query and one slash at its end, and the server's origin. Identifiers are kept as servers write
// them, since they go back to the provider byte for byte.
func Resources(server string) []string {
	u, ok := parse(server)
	if !ok {
		return nil
	}
	plain := *u
	plain.RawQuery = ""
	full, _, _ := strings.Cut(server, "#")
	canonical, _ := Canonical(server)
	out := []string{canonical, full, otherSlash(plain.String()), plain.String(), origin(u), origin(u) + "/"}
	var unique []string
	for _, r := range out {
		if !slices.Contains(unique, r) {
			unique = append(unique, r)
		}
	}
	return unique
}

// Covers says whether a token for resource may be sent to server: the same origin, and the resource's path is the
// server's or above it, at a segment boundary. An empty resource covers nothing.
func Covers(resource, server string) bool {
	r, ok1 := parse(resource)
	s, ok2 := parse(server)
	if !ok1 || !ok2 || r.Scheme != s.Scheme || r.Host != s.Host {
		return false
	}
	// Dots are resolved by the far end, so that what looks below the resource may not be.
	if hasDots(s) || hasDots(r) {
		return r.EscapedPath() == s.EscapedPath() && r.RawQuery == s.RawQuery
	}
	if r.RawQuery != "" && r.RawQuery != s.RawQuery {
		return false
	}
	want := strings.TrimSuffix(r.EscapedPath(), "/")
	have := s.EscapedPath()
	return have == want || strings.HasPrefix(have, want+"/")
}

// hasDots also looks at the decoded path, where %2e and %2f are what a server may make of them.
func hasDots(u *url.URL) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(u.Path, `\`, "/"), "/") {
		if part == ".." || part == "." {
			return true
		}
	}
	return false
}

// Origin is scheme, host and port of a URL; ok is false for what is no http(s) URL.
func Origin(raw string) (out string, ok bool) {
	u, ok := parse(raw)
	if !ok {
		return "", false
	}
	return origin(u), true
}

// Host names a URL's host for messages.
func Host(raw string) string {
	if u, ok := parse(raw); ok {
		return u.Host
	}
	return "an unusable address"
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

func otherSlash(s string) string {
	if before, ok := strings.CutSuffix(s, "/"); ok {
		return before
	}
	return s + "/"
}

// sameBut compares identifiers; one slash at the end does not tell them apart (servers disagree with themselves on it).
func sameBut(a, b string) bool { return strings.TrimSuffix(a, "/") == strings.TrimSuffix(b, "/") }

// usable says whether an endpoint may be talked to: https, or http to loopback where that is allowed. The guarded client
// decides about addresses.
func usable(raw string, loopback bool) bool {
	u, ok := parse(raw)
	if !ok || strings.Contains(raw, "#") {
		return false
	}
	return u.Scheme == "https" || loopback && IsLoopback(u.Hostname())
}

// IsLoopback says whether host is a name or address of this machine.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
}
