package safehttp

import (
	"net/http"
	"net/url"
	"strings"
)

// maxRedirects is how many hops follow the first request.
const maxRedirects = 5

// CheckRedirect is the redirect rule as http.Client takes it. [Client.HTTP] and [Client.Streaming] have it already; it
// is for callers that build an http.Client around [Client.Transport].
//
// A refused redirect is a *BlockedError, not the 3xx answer: nobody is to take that for a result.
func (c *Client) CheckRedirect(req *http.Request, via []*http.Request) error {
	first, last := via[0], via[len(via)-1]
	host := req.URL.Hostname()
	block := func(reason string) error { return &BlockedError{Host: host, Reason: reason} }
	switch {
	case first.Method != http.MethodGet && first.Method != http.MethodHead && first.Method != "":
		// A token request that follows a redirect would carry a code or a refresh token to a place nobody checked.
		return block("redirect of a " + first.Method)
	case len(via) > maxRedirects:
		return block("too many redirects")
	case last.URL.Scheme == "https" && req.URL.Scheme != "https":
		return block("redirect from https to " + schemeName(req.URL))
	case isLoopbackName(host) && !isLoopbackName(last.URL.Hostname()):
		return block("redirect to a loopback address")
	}
	if err := c.checkParsed(req.URL); err != nil {
		return err
	}
	// http.Client sets the last URL as referrer, with its query.
	req.Header.Del("Referer")
	for _, r := range append(via[1:len(via):len(via)], req) {
		// Once elsewhere, the headers stay away, also when the chain comes back.
		if !sameOrigin(first.URL, r.URL) {
			stripHeaders(req.Header)
			break
		}
	}
	return nil
}

// stripHeaders leaves what says nothing about the caller. http.Client keeps Authorization for subdomains and knows
// nothing of API keys in headers of their own; an allow-list covers both.
func stripHeaders(h http.Header) {
	for name := range h {
		switch name {
		case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent":
		default:
			h.Del(name)
		}
	}
}

func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// schemeName keeps a hostile scheme out of the reason.
func schemeName(u *url.URL) string {
	if u.Scheme == "http" {
		return "http"
	}
	return "another scheme"
}
