package signin

import (
	"net/http"
	"net/netip"
	"strings"

	"tarry/auth"
	"tarry/server/web"
)

// ModeProxy is the mode of [Proxy].
const ModeProxy = "proxy"

// maxName bounds subjects and names from outside, in bytes.
const maxName = 255

// Proxy takes the word of a proxy that has signed the person in. The header of anybody else is refused and not ignored:
// it is either an attack or a proxy that is missing in the list.
type Proxy struct {
	// Header has the person's subject, such as X-Forwarded-User. The proxy must remove it from what clients send.
	Header string
	// Issuer names the proxy's directory of people: subjects are unique inside it.
	Issuer string
	// Peers are the proxies' addresses. Required.
	Peers []netip.Prefix
}

// person returns who sent r; the zero Person when the proxy names nobody.
func (p Proxy) person(r *http.Request) (auth.Person, *refusal) {
	values := r.Header.Values(p.Header)
	if len(values) == 0 {
		return auth.Person{}, nil
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !web.Within(peer.Addr(), p.Peers) {
		return auth.Person{}, &refusal{http.StatusForbidden, "proxy header from a peer that is not listed", "the header " + p.Header + " is taken from the proxy of this server only"}
	}
	if len(values) > 1 {
		return auth.Person{}, &refusal{http.StatusForbidden, "proxy header is repeated", "the header " + p.Header + " stands more than once"}
	}
	subject := strings.TrimSpace(values[0])
	switch {
	case subject == "":
		return auth.Person{}, nil
	case len(subject) > maxName || !printable(subject):
		return auth.Person{}, &refusal{http.StatusForbidden, "proxy header is no name", "the header " + p.Header + " is no name"}
	}
	return auth.Person{Issuer: p.Issuer, Subject: subject}, nil
}

// printable is stricter than what a header may hold: bytes beyond ASCII have no agreed encoding there.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c > 0x7e })
}
