package safehttp

import (
	"net/http"
	"net/url"
	"time"
)

// guard is the transport: it checks the URL of every request, picks the dialer by scheme and caps the body.
type guard struct {
	client *Client
	// plain reaches loopback only, whatever name it is given; secure follows the policy.
	plain, secure *http.Transport
	maxBody       int64
	userAgent     string
}

func (c *Client) newGuard(cfg Config, headerTimeout time.Duration, maxBody int64) *guard {
	return &guard{
		client:    c,
		plain:     c.newTransport(cfg, headerTimeout, true),
		secure:    c.newTransport(cfg, headerTimeout, false),
		maxBody:   maxBody,
		userAgent: cfg.UserAgent,
	}
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.client.checkParsed(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close() // a RoundTripper closes it on errors too
		}
		return nil, err
	}
	if g.userAgent != "" && req.Header.Get("User-Agent") == "" {
		req = req.Clone(req.Context())
		req.Header.Set("User-Agent", g.userAgent)
	}
	t := g.secure
	if req.URL.Scheme == "http" {
		t = g.plain
	}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, quiet(err)
	}
	host := req.URL.Hostname()
	if _, err := url.Parse(resp.Header.Get("Location")); err != nil {
		_ = resp.Body.Close()
		// http.Client would quote the header in its error, and with it whatever the server put there.
		return nil, &BlockedError{Host: host, Reason: "redirect to what is not a URL"}
	}
	if resp.ContentLength > g.maxBody && req.Method != http.MethodHead {
		_ = resp.Body.Close() // unread on purpose
		return nil, &TooLargeError{Host: host, Limit: g.maxBody}
	}
	if resp.StatusCode != http.StatusSwitchingProtocols {
		resp.Body = newCappedBody(resp.Body, g.maxBody, host)
	}
	return resp, nil
}

// CloseIdleConnections lets http.Client reach both pools.
func (g *guard) CloseIdleConnections() {
	g.plain.CloseIdleConnections()
	g.secure.CloseIdleConnections()
}
