package safehttp

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/netip"
	"time"
)

// Defaults of a zero [Config].
const (
	DefaultTimeout       = 10 * time.Second
	DefaultHeaderTimeout = 2 * time.Minute
	DefaultMaxBody       = 1 << 20
	DefaultMaxStream     = 64 << 20

	dialTimeout = 5 * time.Second
)

// Config says what a [Client] may reach and for how long. The zero value is the strictest: public https only.
type Config struct {
	// AllowLoopback permits loopback addresses, and plain http to them. For development and tests only.
	AllowLoopback bool
	// AllowCIDRs lists ranges that are reached although they are private or otherwise refused. Loopback is not
	// governed by it.
	AllowCIDRs []netip.Prefix
	// Timeout bounds a plain call from dial to the last byte of the body; 0 means DefaultTimeout. Keep it shorter
	// than any lease that is held during a call.
	Timeout time.Duration
	// HeaderTimeout bounds how long a streaming call waits for response headers; 0 means DefaultHeaderTimeout.
	HeaderTimeout time.Duration
	// MaxBody caps the body of a plain call in bytes after decompression; 0 means DefaultMaxBody.
	MaxBody int64
	// MaxStream caps each body of a streaming call in bytes; 0 means DefaultMaxStream.
	MaxStream int64
	// UserAgent is sent where the request has none; empty leaves Go's.
	UserAgent string
	// Resolver looks names up; nil means the system's.
	Resolver Resolver
	// RootCAs are trusted for https; nil means the system's.
	RootCAs *x509.CertPool
}

func (c Config) withDefaults() Config {
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.HeaderTimeout <= 0 {
		c.HeaderTimeout = DefaultHeaderTimeout
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBody
	}
	if c.MaxStream <= 0 {
		c.MaxStream = DefaultMaxStream
	}
	if c.Resolver == nil {
		c.Resolver = &net.Resolver{}
	}
	return c
}

// Client makes guarded requests. It is safe for concurrent use and meant to live as long as the process.
type Client struct {
	policy  *policy
	dialers []*dialer
	call    *guard
	stream  *guard
	wait    *guard
	http    *http.Client
	long    *http.Client
	patient *http.Client
}

// New returns a client for cfg.
func New(cfg Config) *Client {
	cfg = cfg.withDefaults()
	c := &Client{policy: newPolicy(cfg.AllowLoopback, cfg.AllowCIDRs)}
	c.call = c.newGuard(cfg, cfg.Timeout, cfg.MaxBody)
	c.stream = c.newGuard(cfg, cfg.HeaderTimeout, cfg.MaxStream)
	c.wait = c.newGuard(cfg, 0, cfg.MaxStream)
	c.http = &http.Client{Transport: c.call, CheckRedirect: c.CheckRedirect, Timeout: cfg.Timeout}
	c.long = &http.Client{Transport: c.stream, CheckRedirect: c.CheckRedirect}
	c.patient = &http.Client{Transport: c.wait, CheckRedirect: c.CheckRedirect}
	return c
}

// HTTP is the client for plain calls: discovery, registration, token requests, tools over HTTP. Its errors are
// *url.Error and print the whole URL: use [Client.Do], or [Redact], before one is logged or stored.
func (c *Client) HTTP() *http.Client { return c.http }

// Streaming is the client for calls that stay open, such as MCP over streamable HTTP: bounds on dial, TLS handshake,
// response headers and bytes, but none on the time a body takes. The caller's context ends it.
func (c *Client) Streaming() *http.Client { return c.long }

// Patient is the client for callers that bound a server's silence themselves: as [Client.Streaming], without a bound on
// response headers. An MCP server that answers in JSON sends them only when its tool is done.
func (c *Client) Patient() *http.Client { return c.patient }

// Transport is what [Client.Streaming] sends with. It checks every request, so also every hop, but an http.Client
// around it needs [Client.CheckRedirect] too.
func (c *Client) Transport() http.RoundTripper { return c.stream }

// Do sends a plain call. Unlike the method of http.Client, its errors never contain the URL.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req) //nolint:gosec // G704: this client is the guard against it
	return resp, Redact(err)
}

// CloseIdleConnections closes connections that no call uses.
func (c *Client) CloseIdleConnections() {
	c.call.CloseIdleConnections()
	c.stream.CloseIdleConnections()
	c.wait.CloseIdleConnections()
}

// newTransport is the only place where a transport is made. onlyLoopback is for plain http.
func (c *Client) newTransport(cfg Config, headerTimeout time.Duration, onlyLoopback bool) *http.Transport {
	d := newDialer(c.policy, cfg.Resolver, min(dialTimeout, cfg.Timeout), onlyLoopback)
	c.dialers = append(c.dialers, d)
	return &http.Transport{
		Proxy:                  nil, // a proxy from the environment would connect past the check
		DialContext:            d.DialContext,
		TLSHandshakeTimeout:    min(dialTimeout, cfg.Timeout),
		ResponseHeaderTimeout:  headerTimeout,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        90 * time.Second,
		TLSClientConfig:        &tls.Config{RootCAs: cfg.RootCAs, MinVersion: tls.VersionTLS12},
	}
}
