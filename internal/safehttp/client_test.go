package safehttp_test

import (
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/safehttp"
)

// names is a resolver; each lookup of a name takes the next answer and stays on the last.
type names struct {
	answers map[string][][]string
	lookups atomic.Int64
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	i := int(n.lookups.Add(1)) - 1
	rounds, ok := n.answers[strings.ToLower(host)]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	var out []netip.Addr
	for _, a := range rounds[min(i, len(rounds)-1)] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// internet serves handler as every public https address; the client's certificate checks stay on.
func internet(t *testing.T, cfg safehttp.Config, handler http.Handler) (*safehttp.Client, *atomic.Int64) {
	t.Helper()
	srv := httptest.NewTLSServer(handler)
	t.Cleanup(srv.Close)
	cfg.RootCAs = x509.NewCertPool()
	cfg.RootCAs.AddCert(srv.Certificate())
	c := safehttp.New(cfg)
	t.Cleanup(c.CloseIdleConnections)
	var dials atomic.Int64
	c.SetConnect(func(ctx context.Context, network, _ string) (net.Conn, error) {
		dials.Add(1)
		return (&net.Dialer{}).DialContext(ctx, network, srv.Listener.Addr().String())
	})
	return c, &dials
}

func loopback(t *testing.T, cfg safehttp.Config, handler http.HandlerFunc) (*safehttp.Client, string) {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	cfg.AllowLoopback = true
	c := safehttp.New(cfg)
	t.Cleanup(c.CloseIdleConnections)
	return c, srv.URL
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return string(body), err
}

func requireBlocked(t *testing.T, err error, reason string) {
	t.Helper()
	var blocked *safehttp.BlockedError
	require.ErrorAs(t, err, &blocked)
	require.Contains(t, blocked.Reason, reason)
}

func TestDialChecksResolvedAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer []string
		cfg    safehttp.Config
		reason string
	}{
		"public":             {answer: []string{"93.184.216.34"}},
		"public in v6 form":  {answer: []string{"::ffff:93.184.216.34"}},
		"one of two":         {answer: []string{"10.0.0.1", "93.184.216.34"}},
		"metadata":           {answer: []string{"169.254.169.254"}, reason: "metadata"},
		"mapped private":     {answer: []string{"::ffff:10.0.0.1"}, reason: "private"},
		"private":            {answer: []string{"192.168.0.1"}, reason: "private"},
		"loopback":           {answer: []string{"127.0.0.1"}, reason: "loopback"},
		"IPv6 loopback":      {answer: []string{"::1"}, reason: "loopback"},
		"NAT64":              {answer: []string{"64:ff9b::7f00:1"}, reason: "embeds"},
		"link-local, zone":   {answer: []string{"fe80::1%eth0"}, reason: "link-local"},
		"no address":         {answer: []string{}, reason: "no address"},
		"allowed range":      {answer: []string{"10.1.0.1"}, cfg: safehttp.Config{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}}},
		"loopback, dev flag": {answer: []string{"127.0.0.1"}, cfg: safehttp.Config{AllowLoopback: true}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.cfg.Resolver = &names{answers: map[string][][]string{"example.com": {tt.answer}}}
			c, dials := internet(t, tt.cfg, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, "ok")
			}))
			for _, client := range []*http.Client{c.HTTP(), c.Streaming(), {Transport: c.Transport()}} {
				body, err := get(t, client, "https://example.com/")
				if tt.reason == "" {
					require.NoError(t, err)
					require.Equal(t, "ok", body)
					continue
				}
				requireBlocked(t, err, tt.reason)
				require.Zero(t, dials.Load())
			}
		})
	}
}

func TestDNSRebinding(t *testing.T) {
	t.Parallel()
	rebinding := &names{answers: map[string][][]string{"example.com": {{"93.184.216.34"}, {"169.254.169.254"}}}}
	c, dials := internet(t, safehttp.Config{Resolver: rebinding}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
	}))
	require.NoError(t, c.CheckURL("https://example.com/"))
	require.Zero(t, rebinding.lookups.Load())

	_, err := get(t, c.HTTP(), "https://example.com/")
	require.NoError(t, err)
	require.Equal(t, int64(1), rebinding.lookups.Load(), "what was checked is what was dialled")

	_, err = get(t, c.HTTP(), "https://example.com/")
	requireBlocked(t, err, "metadata")
	require.Equal(t, int64(1), dials.Load())
}

func TestPlainHTTPReachesLoopbackOnly(t *testing.T) {
	t.Parallel()
	// localhost that is not: a resolver is not believed.
	c := safehttp.New(safehttp.Config{
		AllowLoopback: true,
		AllowCIDRs:    []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Resolver:      &names{answers: map[string][][]string{"localhost": {{"10.0.0.1"}}}},
	})
	_, err := get(t, c.HTTP(), "http://localhost:1/")
	requireBlocked(t, err, "plain http")
}

func TestSocketItselfIsGuarded(t *testing.T) {
	t.Parallel()
	c := safehttp.New(safehttp.Config{})
	for _, u := range []string{"https://169.254.169.254/", "https://[::ffff:10.0.0.1]/", "https://127.0.0.1/", "file:///etc/passwd"} {
		_, err := get(t, c.HTTP(), u)
		requireBlocked(t, err, "")
	}
}

func TestBodyCaps(t *testing.T) {
	t.Parallel()
	const limit = 1000
	tests := map[string]struct {
		write func(w http.ResponseWriter)
		large bool
	}{
		"exactly the limit": {write: func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, strings.Repeat("x", limit))
		}},
		"one more, announced": {large: true, write: func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, strings.Repeat("x", limit+1))
		}},
		"one more, chunked": {large: true, write: func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusOK)
			w.(http.Flusher).Flush()
			_, _ = io.WriteString(w, strings.Repeat("x", limit+1))
		}},
		"unpacks to more": {large: true, write: func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("x", 100*limit))
			_ = z.Close()
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, base := loopback(t, safehttp.Config{MaxBody: limit, MaxStream: limit}, func(w http.ResponseWriter, _ *http.Request) {
				tt.write(w)
			})
			for _, client := range []*http.Client{c.HTTP(), c.Streaming()} {
				body, err := get(t, client, base)
				if !tt.large {
					require.NoError(t, err)
					require.Len(t, body, limit)
					continue
				}
				var large *safehttp.TooLargeError
				require.ErrorAs(t, err, &large)
				require.Equal(t, int64(limit), large.Limit)
				require.LessOrEqual(t, len(body), limit)
			}
		})
	}
}

func TestSlowBodies(t *testing.T) {
	t.Parallel()
	const timeout = 150 * time.Millisecond
	c, base := loopback(t, safehttp.Config{Timeout: timeout, HeaderTimeout: timeout}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/headers" {
			<-r.Context().Done()
			return
		}
		tick := time.NewTicker(timeout / 5)
		defer tick.Stop()
		for range 10 { // twice the timeout in all, never silent for long
			select {
			case <-r.Context().Done():
				return
			case <-tick.C:
				_, _ = io.WriteString(w, "x")
				w.(http.Flusher).Flush()
			}
		}
	})
	isTimeout := func(err error) bool {
		var ne net.Error
		return errors.As(err, &ne) && ne.Timeout()
	}

	_, err := get(t, c.HTTP(), base+"/body")
	require.True(t, isTimeout(err), "a plain call has one time budget: %v", err)
	body, err := get(t, c.Streaming(), base+"/body")
	require.NoError(t, err)
	require.Len(t, body, 10)
	_, err = get(t, c.Streaming(), base+"/headers")
	require.True(t, isTimeout(err), "%v", err)
}

func TestErrorsDoNotPrintURLs(t *testing.T) {
	t.Parallel()
	c, base := loopback(t, safehttp.Config{Timeout: 50 * time.Millisecond}, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	})
	for _, u := range []string{base + "/?code=secret", "https://10.0.0.1/?code=secret", "http://127.0.0.1:1/?code=secret"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, u, nil)
		require.NoError(t, err)
		resp, err := c.Do(req)
		if resp != nil {
			_ = resp.Body.Close()
		}
		require.Error(t, err)
		require.NotContains(t, err.Error(), "secret")
		var ue *url.Error
		require.NotErrorAs(t, err, &ue)
	}
	require.NoError(t, safehttp.Redact(nil))
}

func TestUserAgent(t *testing.T) {
	t.Parallel()
	var agent string
	c, base := loopback(t, safehttp.Config{UserAgent: "tarry/test"}, func(_ http.ResponseWriter, r *http.Request) {
		agent = r.UserAgent()
	})
	_, err := get(t, c.HTTP(), base)
	require.NoError(t, err)
	require.Equal(t, "tarry/test", agent)
}

// TestEnvironmentProxyIsIgnored is not parallel: it sets the environment.
func TestEnvironmentProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1")
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	c, _ := internet(t, safehttp.Config{Resolver: &names{answers: map[string][][]string{"example.com": {{"93.184.216.34"}}}}},
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, err := get(t, c.HTTP(), "https://example.com/")
	require.NoError(t, err)
}
