package oauth_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

// skewed is another process on the same store, whose clock is wrong.
func (w *world) skewed(by time.Duration) *oauth.Service {
	return w.newService(func(c *oauth.Config) { c.Now = func() time.Time { return w.now().Add(by) } })
}

var skews = map[string]time.Duration{"ahead": 5 * time.Minute, "behind": -5 * time.Minute}

// A lease that lives is not taken over by a process whose clock is ahead, and one that is over is, by a process whose
// clock is behind.
func TestLeasesUnderClockSkew(t *testing.T) {
	t.Parallel()
	for name, by := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.login(w.mcpWant())
			w.pass(2 * time.Hour)
			arrived, answer := make(chan struct{}, 2), make(chan struct{})
			w.provider.set(func(p *provider) { p.before = func(url.Values) { arrived <- struct{}{}; <-answer } })
			done := make(chan error, 2)
			use := func(s *oauth.Service) {
				_, err := s.Broker(ann, oauth.Use{}, nil).Token(t.Context(), w.mcpWant())
				done <- err
			}
			go use(w.service)
			<-arrived
			leases := w.store.leased()
			go use(w.skewed(by))
			require.Eventually(t, func() bool { return w.store.leased() > leases+2 }, time.Minute, time.Millisecond, "the other asks for the lease")
			require.Len(t, refreshes(w.provider), 1, "the lease is respected")
			close(answer)
			require.NoError(t, <-done)
			require.NoError(t, <-done)
			require.Len(t, refreshes(w.provider), 1)
		})
		t.Run(name+", taken by the skewed one", func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.login(w.mcpWant())
			w.pass(2 * time.Hour)
			g := w.store.allGrants()[0]
			skewed := w.skewed(by)
			_, ok, err := w.store.Lease(t.Context(), ann, g.ID, g.Version, 30*time.Second) // and died
			require.NoError(t, err)
			require.True(t, ok)
			w.pass(31 * time.Second)
			_, err = skewed.Broker(ann, oauth.Use{}, nil).Token(t.Context(), w.mcpWant())
			require.NoError(t, err)
			require.Len(t, refreshes(w.provider), 1)
		})
	}
}

// An exchange that is under way is not taken over by a server whose clock is ahead; one that was interrupted is by a server
// whose clock is behind.
func TestExchangeLeaseUnderClockSkew(t *testing.T) {
	t.Parallel()
	for name, by := range skews {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.ask("R", w.needOf(w.mcpWant()))
			cb := w.callback("R")
			skewed := w.skewed(by)
			w.provider.set(func(p *provider) {
				p.before = func(url.Values) {
					n, err := skewed.Recover(t.Context())
					require.NoError(t, err)
					require.Zero(t, n, "the exchange is under way")
				}
			})
			out, err := w.service.Complete(t.Context(), only(ann), cb)
			require.NoError(t, err)
			require.Equal(t, auth.StatusGranted, out.Outcome)
			require.Len(t, w.provider.tokenRequests(), 1)

			w.provider.set(func(p *provider) { p.before = nil })
			w.ask("S", w.needOf(auth.Want{Server: w.provider.mcp(), Refused: 99}))
			cb = w.callback("S")
			w.setFault(func(point string) {
				if point == oauth.FaultExchanging {
					panic("killed")
				}
			})
			require.Panics(t, func() { _, _ = w.service.Complete(t.Context(), only(ann), cb) })
			w.setFault(nil)
			w.pass(time.Minute)
			n, err := skewed.Recover(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, auth.StatusGranted, w.store.status("S"))
		})
	}
}

// Processes that disagree on the time agree on how long a token lives, whoever got it: none asks or refreshes too early,
// and none too late.
func TestExpiryUnderClockSkew(t *testing.T) {
	t.Parallel()
	for name, by := range skews {
		for _, refreshable := range []bool{true, false} {
			for _, firstSkewed := range []bool{true, false} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.provider.answer = func(_ url.Values, f map[string]any) {
						f["expires_in"] = 60
						if !refreshable {
							delete(f, "refresh_token")
						}
					}
					right, skewed := w.service, w.skewed(by)
					if firstSkewed {
						w.service = skewed
					}
					w.ask("R", w.needOf(w.mcpWant()))
					_, err := w.service.Complete(t.Context(), only(ann), w.callback("R"))
					require.NoError(t, err)
					for i := range 3 {
						for name, s := range map[string]*oauth.Service{"right": right, "skewed": skewed} {
							token, err := s.Broker(ann, oauth.Use{}, nil).Token(t.Context(), w.mcpWant())
							require.NoError(t, err, name)
							now := w.now()
							if name == "skewed" {
								now = now.Add(by)
							}
							require.Equal(t, time.Minute-time.Duration(i)*15*time.Second, token.Expires.Sub(now), name)
						}
						w.pass(15 * time.Second)
					}
					require.Empty(t, refreshes(w.provider))
					w.pass(20 * time.Second)
					for i, s := range []*oauth.Service{right, skewed, right, skewed} {
						_, err := s.Broker(ann, oauth.Use{}, nil).Token(t.Context(), w.mcpWant())
						if refreshable {
							require.NoError(t, err, i)
						} else {
							required(t, err)
						}
					}
					if refreshable {
						require.Len(t, refreshes(w.provider), 1)
					}
				})
			}
		}
	}
}

// The server's own clock may be the one that is wrong: use, 401, one refresh.
func TestServerThatEndsTokensEarly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.login(w.mcpWant())
	b := w.broker()
	_, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.NoError(t, b.Challenged(t.Context(), w.mcpWant(), unauthorized(first.Version)))
	next, err := b.Token(t.Context(), w.mcpWant())
	require.NoError(t, err)
	require.Greater(t, next.Version, first.Version)
	require.Len(t, refreshes(w.provider), 1)
}
