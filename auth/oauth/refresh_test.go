package oauth_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

// expires_in of any shape: what makes no sense is unknown, and an unknown end is found out by use.
func TestExpiresInOfAnyShape(t *testing.T) {
	t.Parallel()
	const decade = 10 * 365 * 24 * time.Hour
	for raw, life := range map[string]time.Duration{
		`3600`: time.Hour, `"3600"`: time.Hour, `3600.5`: time.Hour, `3.6e3`: time.Hour,
		`"soon"`: 0, `-1`: 0, `0`: 0, `null`: 0, `""`: 0, `"NaN"`: 0, `[3600]`: 0, `{"s":1}`: 0, `true`: 0,
		`1e300`: decade, `"Inf"`: decade, `9223372036854775807`: decade, `9999999999999999999999`: decade,
	} {
		t.Run(raw, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			set := func(_ url.Values, f map[string]any) { f["expires_in"] = json.RawMessage(raw) }
			w.provider.set(func(p *provider) { p.answer = set })
			token := w.login(w.mcpWant())
			if life == 0 {
				require.True(t, token.Expires.IsZero())
			} else {
				require.Equal(t, life, token.Expires.Sub(w.now()))
			}
			w.pass(life - min(life, refreshAheadOfTests))
			_, err := w.broker().Token(t.Context(), w.mcpWant())
			require.NoError(t, err)
			require.Empty(t, refreshes(w.provider), "it lives")

			b := w.broker()
			require.NoError(t, b.Challenged(t.Context(), w.mcpWant(), unauthorized(token.Version)))
			next, err := b.Token(t.Context(), w.mcpWant())
			require.NoError(t, err)
			require.Len(t, refreshes(w.provider), 1)
			require.Equal(t, life == 0, next.Expires.IsZero())
		})
	}
}

const refreshAheadOfTests = 90 * time.Second

// A refresh may be answered in any of the shapes that a login may.
func TestRefreshAnswersOfAllShapes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ kind, body string }{
		"form":                 {"application/x-www-form-urlencoded", "access_token=NEW&token_type=bearer&expires_in=60&refresh_token=NEXT"},
		"form as text":         {"text/plain; charset=utf-8", "access_token=NEW&expires_in=60&refresh_token=NEXT"},
		"JSON without a type":  {"", `{"access_token":"NEW","expires_in":60,"refresh_token":"NEXT"}`},
		"empty refresh token":  {"application/json", `{"access_token":"NEW","refresh_token":""}`},
		"null refresh token":   {"application/json", `{"access_token":"NEW","refresh_token":null}`},
		"other scopes":         {"application/json", `{"access_token":"NEW","scope":"everything"}`},
		"more than one object": {"application/json", `{"access_token":"NEW"} {"access_token":"OTHER"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first := w.login(w.mcpWant())
			w.pass(2 * time.Hour)
			w.provider.set(func(p *provider) {
				p.raw = func(url.Values) (int, string, string) { return 200, tc.kind, tc.body }
			})
			next, err := w.broker().Token(t.Context(), w.mcpWant())
			require.NoError(t, err)
			require.Equal(t, "NEW", next.Access.Reveal())
			require.Equal(t, first.Scopes, next.Scopes, "a refresh widens nothing")
		})
	}
}

// Without a refresh token the person is asked again when the token ends, each time, and never in between.
func TestShortTokensWithoutRefreshAskAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.provider.answer = func(_ url.Values, f map[string]any) {
		f["expires_in"] = 60
		delete(f, "refresh_token")
	}
	for i := range 3 {
		token := w.login(w.mcpWant())
		w.pass(59 * time.Second)
		_, err := w.broker().Token(t.Context(), w.mcpWant())
		require.NoError(t, err, "it is used to its end")
		w.pass(time.Second)
		_, err = w.broker().Token(t.Context(), w.mcpWant())
		require.Equal(t, token.Version, required(t, err).Refused, i)
	}
	require.Empty(t, refreshes(w.provider))
}

// Authorization, code and refresh carry one resource, byte by byte as the server or the definition writes it.
func TestResourceIsTheSameInEveryRequest(t *testing.T) {
	t.Parallel()
	for _, suffix := range []string{"", "/", "%7Ea/../x"} {
		t.Run(suffix, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			want := w.explicitWant()
			want.Auth.Resource += suffix
			want.Server = want.Auth.Resource
			resource := want.Auth.Resource
			w.ask("R", w.needOf(want))
			s, cookies := w.begin("R")
			u, err := url.Parse(s.RedirectURL)
			require.NoError(t, err)
			cb := w.provider.approve(s.RedirectURL)
			cb.Cookies = cookies
			_, err = w.service.Complete(t.Context(), only(ann), cb)
			require.NoError(t, err)
			w.pass(2 * time.Hour)
			_, err = w.broker().Token(t.Context(), want)
			require.NoError(t, err)
			sent := w.provider.tokenRequests()
			require.Len(t, sent, 2)
			for i, q := range append(sent, u.Query()) {
				require.Equal(t, []string{resource}, q["resource"], i)
			}
		})
	}
}

// A fresh token that is refused as well costs no further refresh, in however many calls and processes, and whether it was
// refreshed because it was refused or because it was due: the person is asked.
func TestFreshTokenThatIsRefused(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]bool{"refused": false, "due": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			used := w.login(w.mcpWant()).Version
			if due {
				w.pass(2 * time.Hour)
			}
			services := []*oauth.Service{w.service, w.newService()}
			brokers := make([]auth.Broker, 20)
			if due {
				brokers = brokers[:1] // whoever comes later finds a token of some age, and may try a refresh
			}
			for i := range brokers {
				brokers[i] = services[i%2].Broker(ann, oauth.Use{}, nil)
			}
			each := func(f func(b auth.Broker) error) {
				var wg sync.WaitGroup
				errs := make([]error, len(brokers))
				for i, b := range brokers {
					wg.Go(func() { errs[i] = f(b) })
				}
				wg.Wait()
				require.NoError(t, errors.Join(errs...))
			}
			each(func(b auth.Broker) error {
				if due {
					token, err := b.Token(t.Context(), w.mcpWant())
					if err == nil && token.Version != used+1 {
						err = fmt.Errorf("version %d", token.Version)
					}
					return err
				}
				return b.Challenged(t.Context(), w.mcpWant(), unauthorized(used))
			})
			each(func(b auth.Broker) error {
				err := b.Challenged(t.Context(), w.mcpWant(), unauthorized(used+1))
				var r *auth.RequiredError
				if !errors.As(err, &r) || r.Need.Refused != used+1 {
					return fmt.Errorf("refused again: %w", err)
				}
				return nil
			})
			require.Len(t, refreshes(w.provider), 1)
		})
	}
}

// A grant that was revoked at the provider ends at its next refresh, and its person is asked, once.
func TestRevokedGrant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	token := w.login(w.mcpWant())
	w.provider.set(func(p *provider) { clear(p.refresh) })
	for range 3 {
		b := w.broker()
		_, err := b.Token(t.Context(), w.mcpWant())
		if err == nil {
			err = b.Challenged(t.Context(), w.mcpWant(), unauthorized(token.Version))
		} else {
			require.ErrorIs(t, err, auth.ErrNoToken)
			err = b.Challenged(t.Context(), w.mcpWant(), unauthorized(0))
		}
		required(t, err)
	}
	require.Len(t, refreshes(w.provider), 1, "invalid_grant is final")
	require.Empty(t, w.store.allGrants())
}
