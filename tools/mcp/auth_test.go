package mcp_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/tools/mcp"
)

func TestLoginIsRequired(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			s.guard(bearer(only("T1")))
			o := newOpener(t)
			ask := &broker{err: auth.ErrNoToken}
			ts := open(t, o, definition(s.URL), alice(), ask)

			for _, err := range []error{
				second(ts.List(t.Context())), second(ts.Call(t.Context(), echoCall("c", "x"))),
			} {
				var required *auth.RequiredError
				require.ErrorAs(t, err, &required)
				require.Equal(t, "k", required.Need.Key)
				require.NotContains(t, err.Error(), "BODY-OF-REFUSAL")
			}
			got := ask.seen()
			require.Len(t, got, 2, "one challenge for each attempt, although go-sdk connects in two ways")
			require.Equal(t, auth.Challenge{Status: 401, WWWAuthenticate: []string{challenge}}, got[0])
			require.Equal(t, auth.Want{Server: s.URL, Toolset: "orders"}, ask.wants[0])
			require.Len(t, s.seen(""), 2, "nothing is sent after the refusal")
			require.Empty(t, s.seen("")[0].Auth)

			ts = open(t, o, definition(s.URL), alice(), holding("T1", 1))
			_, err := ts.List(t.Context())
			require.NoError(t, err)
			res, err := ts.Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
			require.Equal(t, "x/c/Bearer T1", text(t, res))
		})
	}
}

func second[T any](_ T, err error) error { return err }

func TestBrokerKnowsThatALoginIsRequired(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{})
	b := &broker{err: fmt.Errorf("vault: %w", &auth.RequiredError{Need: auth.Need{Key: "k"}})}
	def := definition(s.URL, func(d *agent.MCPToolset) { d.Auth = &agent.Auth{Key: "k", Type: agent.AuthMCP} })
	_, err := open(t, newOpener(t), def, alice(), b).Call(t.Context(), echoCall("c", "x"))
	var required *auth.RequiredError
	require.ErrorAs(t, err, &required)
	require.Empty(t, s.seen(""), "the server is not bothered")
	require.Equal(t, auth.Want{Server: s.URL, Toolset: "orders", Tool: "echo", Auth: *def.Auth}, b.wants[0])
}

func TestRevokedTokenIsRefreshedOnce(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			s.guard(bearer(only("T1")))
			b := holding("T1", 1)
			ts := open(t, newOpener(t), definition(s.URL), alice(), b)
			_, err := ts.Call(t.Context(), echoCall("c1", "x"))
			require.NoError(t, err)

			s.guard(bearer(only("T2")))
			b.challenged = func(b *broker, _ auth.Challenge) error {
				b.token = auth.AccessToken{Access: auth.NewSecret("T2"), Version: 2}
				return nil
			}
			res, err := ts.Call(t.Context(), echoCall("c2", "x"))
			require.NoError(t, err)
			require.Equal(t, "x/c2/Bearer T2", text(t, res))
			require.Len(t, b.seen(), 1)
			require.Equal(t, int64(1), b.seen()[0].Used)
			require.Equal(t, int64(1), b.wants[len(b.wants)-1].Refused)
		})
	}
}

func TestServerThatRefusesFreshTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		second error
		check  func(*testing.T, error)
	}{
		"login": {&auth.RequiredError{}, func(t *testing.T, err error) {
			t.Helper()
			var required *auth.RequiredError
			require.ErrorAs(t, err, &required)
		}},
		"no help": {nil, func(t *testing.T, err error) {
			t.Helper()
			var told *tools.Error
			require.ErrorAs(t, err, &told)
			require.Contains(t, told.Message, "just issued")
		}},
		"unavailable": {fmt.Errorf("refresh: %w", auth.ErrUnavailable), func(t *testing.T, err error) {
			t.Helper()
			require.ErrorIs(t, err, auth.ErrUnavailable)
			require.ErrorIs(t, err, tools.ErrNotExecuted)
		}},
		"misconfigured": {auth.ErrMisconfigured, func(t *testing.T, err error) {
			t.Helper()
			var told *tools.Error
			require.ErrorAs(t, err, &told)
			require.ErrorIs(t, err, auth.ErrMisconfigured)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{})
			s.guard(bearer(only()))
			b := holding("T1", 1)
			b.challenged = func(b *broker, c auth.Challenge) error {
				if c.Used == 1 {
					b.token = auth.AccessToken{Access: auth.NewSecret("T2"), Version: 2}
					return nil
				}
				return tt.second
			}
			_, err := open(t, newOpener(t), definition(s.URL), alice(), b).Call(t.Context(), echoCall("c", "x"))
			tt.check(t, err)
			require.Len(t, b.seen(), 2)
			require.Equal(t, int64(2), b.seen()[1].Used)
			require.Len(t, s.seen(""), 2)
		})
	}
}

func TestBrokerMayTakeLongerThanTheServer(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{})
	s.guard(bearer(only("T2")))
	b := holding("T1", 1)
	b.challenged = func(b *broker, _ auth.Challenge) error {
		<-time.After(600 * time.Millisecond) // a provider that is slow to answer
		b.token = auth.AccessToken{Access: auth.NewSecret("T2"), Version: 2}
		return nil
	}
	def := definition(s.URL, func(d *agent.MCPToolset) { d.Timeout = 500 * time.Millisecond })
	_, err := open(t, newOpener(t), def, alice(), b).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
}

func TestForbidden(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		header   string
		required bool
	}{
		"insufficient scope": {`Bearer error="insufficient_scope", scope="read write"`, true},
		"several challenges": {`Basic realm="x", Bearer error="insufficient_scope"`, true},
		"other error":        {`Bearer error="invalid_request"`, false},
		"no header":          {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{})
			s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
				if q.Method != "tools/call" {
					return false
				}
				if tt.header != "" {
					w.Header().Set("WWW-Authenticate", tt.header)
				}
				http.Error(w, "BODY", http.StatusForbidden)
				return true
			})
			b := holding("T1", 4)
			_, err := open(t, newOpener(t), definition(s.URL), alice(), b).Call(t.Context(), echoCall("c", "x"))
			var required *auth.RequiredError
			require.Equal(t, tt.required, errors.As(err, &required))
			require.NotContains(t, err.Error(), "BODY")
			if tt.required {
				require.Equal(t, []auth.Challenge{{Status: 403, WWWAuthenticate: []string{tt.header}, Used: 4}}, b.seen())
			} else {
				require.Empty(t, b.seen())
			}
		})
	}
}

// One session, many brokers: each request carries the token of its own call.
func TestConcurrentCallsKeepTheirBrokers(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			o := newOpener(t)
			var wg sync.WaitGroup
			errs := make(chan error, 100)
			for i := range 20 {
				wg.Go(func() {
					b := holding(fmt.Sprintf("T%d", i), int64(i))
					ts, err := o.Open(t.Context(), definition(s.URL), alice(), b)
					if err != nil {
						errs <- err
						return
					}
					for j := range 5 {
						id := fmt.Sprintf("c%d-%d", i, j)
						res, err := ts.Call(t.Context(), echoCall(id, "x"))
						if err != nil {
							errs <- err
							return
						}
						content, _ := res.Response["content"].([]any)
						if got := fmt.Sprint(content); !strings.Contains(got, fmt.Sprintf("x/%s/Bearer T%d type:", id, i)) {
							errs <- fmt.Errorf("call %s carried %s", id, got)
						}
					}
				})
			}
			wg.Wait()
			close(errs)
			for err := range errs {
				require.NoError(t, err)
			}
			sessions := map[string]bool{}
			for _, q := range s.seen("tools/call") {
				sessions[q.Header.Get("Mcp-Session-Id")] = true
				require.Contains(t, q.Body, `"tarry/idempotencyKey":"c`+strings.TrimPrefix(q.Auth, "Bearer T")+"-")
			}
			require.Len(t, sessions, 1)
		})
	}
}

func TestUsersShareNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	s.guard(bearer(only("TA", "TB")))
	o := newOpener(t, func(c *mcp.Config) { c.IdleTimeout = time.Minute })
	bob := agent.Owner{App: "app", User: "bob"}
	_, err := open(t, o, definition(s.URL), alice(), holding("TA", 1)).Call(t.Context(), echoCall("a", "x"))
	require.NoError(t, err)

	// Bob has no token: he is asked, although Alice's connection is open.
	_, err = open(t, o, definition(s.URL), bob, &broker{err: auth.ErrNoToken}).Call(t.Context(), echoCall("b", "x"))
	var required *auth.RequiredError
	require.ErrorAs(t, err, &required)
	_, err = open(t, o, definition(s.URL), bob, holding("TB", 1)).Call(t.Context(), echoCall("b", "x"))
	require.NoError(t, err)
	other := agent.Owner{App: "other", User: "alice"}
	_, err = open(t, o, definition(s.URL), other, &broker{err: auth.ErrNoToken}).Call(t.Context(), echoCall("o", "x"))
	require.ErrorAs(t, err, &required)

	require.NoError(t, o.Close())
	owners := map[string][]string{}
	for _, q := range s.seen("") {
		if id := q.Header.Get("Mcp-Session-Id"); id != "" {
			owners[id] = append(owners[id], q.Auth)
		}
	}
	require.Len(t, owners, 2)
	for _, tokens := range owners {
		slices.Sort(tokens)
		require.Len(t, slices.Compact(tokens), 1, "a session sees one person's token, its DELETE included")
	}
	require.Len(t, s.seen(http.MethodDelete), 2)
}

func TestAnonymousListingAndAuthorizedCall(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			gate := bearer(only("T1"))
			s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
				return q.Method == "tools/call" && gate(w, r, q)
			})
			o := newOpener(t)
			ask := &broker{err: auth.ErrNoToken}
			ts := open(t, o, definition(s.URL), alice(), ask)
			_, err := ts.List(t.Context())
			require.NoError(t, err)
			require.Empty(t, ask.seen(), "nobody is asked for a listing that is open to all")
			_, err = ts.Call(t.Context(), echoCall("c", "x"))
			var required *auth.RequiredError
			require.ErrorAs(t, err, &required)
			require.Len(t, ask.seen(), 1)
			_, err = open(t, o, definition(s.URL), alice(), holding("T1", 1)).Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
			require.LessOrEqual(t, len(s.seen("initialize")), 1, "the session survives a refused call")
			require.LessOrEqual(t, len(s.seen("server/discover")), 1)
		})
	}
}

// A broker that waits for a provider keeps no other call of the connection.
func TestSlowBrokerKeepsNobody(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			o := newOpener(t)
			_, err := open(t, o, definition(s.URL), alice(), holding("T1", 1)).List(t.Context())
			require.NoError(t, err)
			slow := &slowBroker{broker: holding("T2", 1), asked: make(chan struct{}), release: make(chan struct{})}
			ts, err := o.Open(t.Context(), definition(s.URL), alice(), slow)
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				_, err := ts.Call(t.Context(), echoCall("slow", "x"))
				done <- err
			}()
			<-slow.asked
			_, err = open(t, o, definition(s.URL), alice(), holding("T1", 1)).Call(t.Context(), echoCall("quick", "x"))
			require.NoError(t, err)
			close(slow.release)
			require.NoError(t, <-done)
		})
	}
}

type slowBroker struct {
	*broker
	asked, release chan struct{}
	once           sync.Once
}

func (b *slowBroker) Token(ctx context.Context, want auth.Want) (auth.AccessToken, error) {
	b.once.Do(func() { close(b.asked) })
	<-b.release
	return b.broker.Token(ctx, want)
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{})
	s.guard(bearer(only("static-secret", "T1")))
	var logged bytes.Buffer
	o := newOpener(t, func(c *mcp.Config) {
		c.Log = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		c.Secrets = func(_ context.Context, src agent.Source) (auth.Secret, error) {
			if src.Name != "TARRY_SECRET_KEY" {
				return auth.Secret{}, errors.New("unknown")
			}
			return auth.NewSecret("static-secret"), nil
		}
	})
	headers := func(value agent.SecretTemplate) func(*agent.MCPToolset) {
		return func(d *agent.MCPToolset) {
			d.Headers = map[string]agent.SecretTemplate{"authorization": value, "X-Tenant": "t1", "Content-Type": "text/evil"}
		}
	}
	static := definition(s.URL, headers("Bearer ${env:TARRY_SECRET_KEY}"))

	res, err := open(t, o, static, alice(), &broker{err: auth.ErrNoToken}).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Equal(t, "x/c/Bearer [secret]", text(t, res), "what the server repeats of it is taken out")
	q := s.seen("tools/call")[0]
	require.Equal(t, "Bearer static-secret", q.Header.Get("Authorization"))
	require.Equal(t, "t1", q.Header.Get("X-Tenant"))
	require.Equal(t, "application/json", q.Header.Get("Content-Type"))

	res, err = open(t, o, static, alice(), holding("T1", 1)).Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	require.Equal(t, "x/c/Bearer T1", text(t, res), "the broker's token wins")

	// Neither does the text of an error give it away.
	s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
		if q.Method != "tools/call" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"bad key %s"}}`, r.Header.Get("Authorization")) //nolint:gosec // JSON for a client of the test
		return true
	})
	_, err = open(t, o, static, alice(), &broker{err: auth.ErrNoToken}).Call(t.Context(), echoCall("c", "x"))
	require.ErrorContains(t, err, "bad key Bearer [secret]")

	// A refused API key is no reason for a login.
	s.guard(bearer(only("T1")))
	b := &broker{err: auth.ErrNoToken}
	_, err = open(t, o, static, alice(), b).Call(t.Context(), echoCall("c", "x"))
	var told *tools.Error
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Message, "headers")
	require.Empty(t, b.seen())

	_, err = open(t, o, definition(s.URL, headers("Bearer ${env:TARRY_SECRET_OTHER}")), alice(), b).Call(t.Context(), echoCall("c", "x"))
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Message, "authorization")

	require.NotContains(t, logged.String(), "static-secret")
	require.NotContains(t, fmt.Sprintf("%+v %#v", o, o), "static-secret")
}
