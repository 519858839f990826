package safehttp

import (
	"net/netip"
	"net/url"
)

// CheckURL reports whether raw may be stored and later requested: an absolute http(s) URL without user or fragment,
// http only for loopback and only where that is allowed, and no literal address that is refused. Names are not
// resolved here, since they may resolve differently when it counts; the check of the dial follows anyway.
//
// The error is a *BlockedError. It never repeats raw.
func (c *Client) CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		// The parser's text repeats the input.
		return &BlockedError{Reason: "not a valid URL"}
	}
	if u.Fragment != "" || u.RawFragment != "" || hasEmptyFragment(raw) {
		return &BlockedError{Host: u.Hostname(), Reason: "URL with a fragment"}
	}
	return c.checkParsed(u)
}

func hasEmptyFragment(raw string) bool {
	return raw != "" && raw[len(raw)-1] == '#'
}

// checkParsed is what holds for a stored URL and for every request and hop.
func (c *Client) checkParsed(u *url.URL) error {
	if u == nil {
		return &BlockedError{Reason: "no URL"}
	}
	host := u.Hostname()
	block := func(reason string) error { return &BlockedError{Host: host, Reason: reason} }
	switch {
	case u.Scheme != "https" && u.Scheme != "http":
		return block("scheme is not https")
	case u.Opaque != "" || host == "":
		return block("URL without a host")
	case u.User != nil:
		return block("URL with user information")
	}
	plain := u.Scheme == "http"
	if plain && !c.policy.loopback {
		return block("scheme is not https")
	}
	if plain && !isLoopbackName(host) {
		return block("plain http to a host that is not loopback")
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		if reason := c.policy.check(addr, plain); reason != "" {
			return block(reason)
		}
		return nil
	}
	if isLoopbackName(host) && !c.policy.loopback {
		return block("loopback address")
	}
	return nil
}
