package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/internal/safehttp"
	"tarry/tools"
	"tarry/tools/mcp"
)

func TestCallAndList(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			ts := open(t, newOpener(t), definition(s.URL), alice(), nil)

			list, err := ts.List(t.Context())
			require.NoError(t, err)
			require.Len(t, list, 5)
			require.Equal(t, "echo", list[0].Name)
			require.Equal(t, "Repeats.", list[0].Description)
			require.True(t, list[0].Idempotent)
			require.JSONEq(t, `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`, string(list[0].Parameters))
			require.Equal(t, []string{"failing", "slow", "structured", "work"}, []string{list[1].Name, list[2].Name, list[3].Name, list[4].Name})
			require.False(t, list[1].Idempotent)
			require.NotEmpty(t, list[3].Response)

			res, err := ts.Call(t.Context(), echoCall("call-7", "hi"))
			require.NoError(t, err)
			require.Equal(t, "hi/call-7/", text(t, res))
			require.Equal(t, false, res.Response["isError"])
			require.NotContains(t, res.Response, "resultType")
			require.NotContains(t, res.Response, "_meta")

			res, err = ts.Call(t.Context(), tools.Call{ID: "c", Name: "structured"})
			require.NoError(t, err)
			require.Equal(t, map[string]any{"text": "x"}, res.Response["structuredContent"])

			res, err = ts.Call(t.Context(), tools.Call{ID: "c", Name: "failing", Args: json.RawMessage(`null`)})
			require.NoError(t, err, "the tool's own error is a result")
			require.Equal(t, true, res.Response["isError"])
			require.Equal(t, "no such order", text(t, res))

			_, err = ts.Call(t.Context(), tools.Call{ID: "c", Name: "missing"})
			var told *tools.Error
			require.ErrorAs(t, err, &told)
			require.Contains(t, told.Message, "missing")
		})
	}
}

func TestRevisions(t *testing.T) {
	t.Parallel()
	use := func(t *testing.T, w wire) *server {
		t.Helper()
		s := newServer(t, w)
		o := newOpener(t)
		ts := open(t, o, definition(s.URL), alice(), nil)
		_, err := ts.List(t.Context())
		require.NoError(t, err)
		_, err = ts.Call(t.Context(), echoCall("c", "x"))
		require.NoError(t, err)
		require.NoError(t, o.Close())
		return s
	}
	t.Run("2025", func(t *testing.T) {
		t.Parallel()
		s := use(t, wire{legacy: true})
		require.Len(t, s.seen("server/discover"), 1)
		require.Len(t, s.seen("initialize"), 1)
		require.Len(t, s.seen("notifications/initialized"), 1)
		require.Empty(t, s.seen(http.MethodGet), "nothing is heard outside of calls")
		require.Len(t, s.seen(http.MethodDelete), 1)
		call := s.seen("tools/call")[0]
		require.NotEmpty(t, call.Header.Get("Mcp-Session-Id"))
		require.Equal(t, "2025-11-25", call.Header.Get("Mcp-Protocol-Version"))
	})
	t.Run("2026", func(t *testing.T) {
		t.Parallel()
		s := use(t, wire{modern: true})
		require.Len(t, s.seen("server/discover"), 1)
		require.Len(t, s.seen(""), 3, "no initialize, no session to end")
		for _, q := range s.seen("") {
			require.Equal(t, http.MethodPost, q.HTTP)
			require.Empty(t, q.Header.Get("Mcp-Session-Id"))
			require.Equal(t, "2026-07-28", q.Header.Get("Mcp-Protocol-Version"))
			require.Equal(t, q.Method, q.Header.Get("Mcp-Method"))
			require.Equal(t, "2026-07-28", meta(t, q)["io.modelcontextprotocol/protocolVersion"])
		}
	})
	t.Run("both", func(t *testing.T) {
		t.Parallel()
		s := use(t, wire{both: true})
		require.Equal(t, "2026-07-28", s.seen("tools/call")[0].Header.Get("Mcp-Protocol-Version"))
		require.Empty(t, s.seen("initialize"))
	})
}

func TestHTTPFailures(t *testing.T) {
	t.Parallel()
	answer := func(status int, kind, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	rpc := func(code int, message string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"error":{"code":%d,"message":%q}}`, code, message)
	}
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter)
		says   string
		is     error // nil: a tools.Error
	}{
		"403":              {answer(403, "text/plain", "BODY"), "HTTP 403 Forbidden", nil},
		"403 json":         {answer(403, "application/json", rpc(-32000, "BODY")), "HTTP 403 Forbidden", nil},
		"400":              {answer(400, "text/plain", "BODY"), "HTTP 400 Bad Request", nil},
		"404":              {answer(404, "text/plain", "BODY"), "HTTP 404", nil},
		"307":              {answer(307, "text/plain", ""), "final URL", nil},
		"429":              {answer(429, "text/plain", "BODY"), "HTTP 429", tools.ErrNotExecuted},
		"500":              {answer(500, "text/plain", "BODY"), "HTTP 500", tools.ErrUnknown},
		"500 JSON-RPC":     {answer(500, "application/json", rpc(-32603, "boom")), "boom", nil},
		"502":              {answer(502, "text/html", "<h1>BODY"), "HTTP 502", tools.ErrUnknown},
		"503":              {answer(503, "text/plain", "BODY"), "HTTP 503", tools.ErrUnknown},
		"504":              {answer(504, "text/plain", "BODY"), "HTTP 504", tools.ErrUnknown},
		"400 JSON-RPC":     {answer(400, "application/json", rpc(-32602, "bad params")), "bad params", nil},
		"not MCP":          {answer(200, "text/html", "<h1>BODY"), "no answer", tools.ErrUnknown},
		"stream cut":       {answer(200, "text/event-stream", ": hello\n\n"), "no answer", tools.ErrUnknown},
		"URL elicitation":  {answer(400, "application/json", rpc(-32042, "BODY")), "names none", nil},
		"connection reset": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "connection failed", tools.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []wire{{legacy: true}, {modern: true}} {
				s := newServer(t, w)
				ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
				s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
					if q.Method == "tools/call" {
						tt.answer(w)
						return true
					}
					return false
				})
				start := time.Now()
				_, err := ts.Call(t.Context(), echoCall("c", "x"))
				require.Less(t, time.Since(start), 4*time.Second)
				require.ErrorContains(t, err, tt.says)
				require.NotContains(t, err.Error(), "BODY")
				require.NotContains(t, err.Error(), s.URL)
				var told *tools.Error
				if tt.is == nil {
					require.ErrorAs(t, err, &told)
				} else {
					require.NotErrorAs(t, err, &told)
					require.ErrorIs(t, err, tt.is)
				}
				require.Len(t, s.seen("tools/call"), 1, "a call that was sent is never repeated here")

				s.guard(nil)
				_, err = ts.Call(t.Context(), echoCall("c", "x"))
				require.NoError(t, err, "the next call works")
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	url := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	ts := open(t, newOpener(t), definition(url), alice(), nil)
	_, err = ts.Call(t.Context(), echoCall("c", "x"))
	require.ErrorIs(t, err, tools.ErrNotExecuted)
	require.NotContains(t, err.Error(), url)
	_, err = ts.List(t.Context())
	require.ErrorIs(t, err, tools.ErrNotExecuted)
}

func TestConnectFailures(t *testing.T) {
	t.Parallel()
	for status, notExecuted := range map[int]bool{403: false, 404: false, 500: true, 503: true} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{})
			s.guard(func(w http.ResponseWriter, _ *http.Request, _ request) bool {
				http.Error(w, "BODY", status)
				return true
			})
			ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
			_, err := ts.Call(t.Context(), echoCall("c", "x"))
			require.ErrorContains(t, err, fmt.Sprint(status))
			require.NotContains(t, err.Error(), "BODY")
			require.Equal(t, notExecuted, errors.Is(err, tools.ErrNotExecuted))
			var told *tools.Error
			require.Equal(t, !notExecuted, errors.As(err, &told))
		})
	}
}

func TestServerThatHangs(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]string{"connect": "server/discover", "list": "tools/list"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{})
			s.guard(func(_ http.ResponseWriter, r *http.Request, q request) bool {
				if q.Method == hangs {
					<-r.Context().Done()
				}
				return q.Method == hangs
			})
			ts := open(t, newOpener(t), definition(s.URL, func(d *agent.MCPToolset) { d.Timeout = 200 * time.Millisecond }), alice(), nil)
			start := time.Now()
			_, err := ts.List(t.Context())
			require.Less(t, time.Since(start), 2*time.Second)
			require.ErrorIs(t, err, tools.ErrNotExecuted)
			require.ErrorContains(t, err, "no answer in time")
		})
	}
}

func TestSilentCall(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			ts := open(t, newOpener(t), definition(s.URL, func(d *agent.MCPToolset) { d.ReadTimeout = time.Second }), alice(), nil)
			_, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "slow"})
			require.ErrorIs(t, err, tools.ErrUnknown)
			require.ErrorContains(t, err, "no answer in time")
			require.Eventually(t, func() bool { return len(s.canceled) == len(s.entered) }, 10*time.Second, time.Millisecond, "the server is told")
			_, err = ts.Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
		})
	}
}

func TestGuardedClient(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{})
	o := newOpener(t, func(c *mcp.Config) { c.HTTP = safehttp.New(safehttp.Config{}).Streaming() })
	_, err := open(t, o, definition(s.URL), alice(), nil).List(t.Context())
	var told *tools.Error
	require.ErrorAs(t, err, &told, "another attempt would be refused too")
	require.Contains(t, told.Message, "refused")
	require.Empty(t, s.seen(""))
}

func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true, json: true})
	client := safehttp.New(safehttp.Config{AllowLoopback: true, MaxStream: 64 << 10})
	t.Cleanup(client.CloseIdleConnections)
	o := newOpener(t, func(c *mcp.Config) { c.HTTP = client.Streaming() })
	ts := open(t, o, definition(s.URL), alice(), nil)
	_, err := ts.Call(t.Context(), echoCall("c", "x"))
	require.NoError(t, err)
	_, err = ts.Call(t.Context(), echoCall("c", strings.Repeat("x", 70<<10)))
	var told *tools.Error
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Message, "too large")
}

func TestCancel(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			s.guard(bearer(only("T1")))
			b := holding("T1", 1)
			ts := open(t, newOpener(t), definition(s.URL), alice(), b)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := ts.Call(ctx, tools.Call{ID: "slow-1", Name: "slow"})
				done <- err
			}()
			require.Equal(t, "slow-1", <-s.entered)
			cancel()
			select {
			case err := <-done:
				require.ErrorIs(t, err, context.Canceled)
			case <-time.After(2 * time.Second):
				require.Fail(t, "the call did not return")
			}
			require.Equal(t, "slow-1", <-s.canceled)
			require.Eventually(t, func() bool { return len(s.seen("notifications/cancelled")) == 1 }, 5*time.Second, time.Millisecond)
			require.Equal(t, "Bearer T1", s.seen("notifications/cancelled")[0].Auth, "the server is told, with a token")
			require.Empty(t, b.seen())
			_, err := ts.Call(t.Context(), echoCall("c", "x"))
			require.NoError(t, err)
		})
	}
}

func TestServerRestart(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			o, sockets := newCounted(t)
			ts := open(t, o, definition(s.URL), alice(), nil)
			_, err := ts.Call(t.Context(), echoCall("c1", "x"))
			require.NoError(t, err)
			s.restart(w)
			s.CloseClientConnections()
			require.Eventually(t, func() bool { return sockets.open.Load() == 0 }, 2*time.Second, time.Millisecond)
			res, err := ts.Call(t.Context(), echoCall("c2", "x"))
			require.NoError(t, err)
			require.Equal(t, "x/c2/", text(t, res))
			s.restart(w)
			_, err = ts.List(t.Context())
			require.NoError(t, err)
		})
	}
}

func TestSessionUnknownByBadRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
	_, err := ts.Call(t.Context(), echoCall("c1", "x"))
	require.NoError(t, err)
	old := s.seen("tools/call")[0].Header.Get("Mcp-Session-Id")
	require.NotEmpty(t, old)
	s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
		if q.Header.Get("Mcp-Session-Id") != old {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		return true
	})
	_, err = ts.Call(t.Context(), echoCall("c2", "x"))
	require.NoError(t, err)
}

func TestNames(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{})
	def := definition(s.URL, func(d *agent.MCPToolset) {
		d.NamePrefix = "shop"
		d.Filter = []string{"echo", "slow"}
	})
	ts := open(t, newOpener(t), def, alice(), nil)
	list, err := ts.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "shop_echo", list[0].Name)
	require.Equal(t, "shop_slow", list[1].Name)

	c := echoCall("c", "x")
	c.Name = "shop_echo"
	_, err = ts.Call(t.Context(), c)
	require.NoError(t, err)
	require.Contains(t, s.seen("tools/call")[0].Body, `"name":"echo"`)
	for _, name := range []string{"echo", "shop_failing", "shop_", "", strings.Repeat("x", 500)} {
		_, err = ts.Call(t.Context(), tools.Call{ID: "c", Name: name})
		var told *tools.Error
		require.ErrorAs(t, err, &told, name)
	}
	require.Len(t, s.seen("tools/call"), 1)
}

func TestRequiredConfig(t *testing.T) {
	t.Parallel()
	_, err := mcp.New(mcp.Config{})
	require.Error(t, err)
	_, err = mcp.New(mcp.Config{HTTP: &http.Client{}})
	require.Error(t, err, "the default transport is not guarded")
	_, err = newOpener(t).Open(t.Context(), definition("http://x"), agent.Owner{}, nil)
	require.ErrorIs(t, err, agent.ErrInvalidOwner)
}
