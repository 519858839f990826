package mcp_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/internal/safehttp"
	"tarry/tools"
	"tarry/tools/mcp"
)

func patience(d time.Duration) func(*agent.MCPToolset) {
	return func(def *agent.MCPToolset) { def.ReadTimeout = d }
}

// A call may take longer than the read timeout as long as the server says something: the tool works for 2.4 s.
func TestProgressKeepsACallAlive(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		if w.json {
			continue // one answer, and nothing before it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			ts := open(t, newOpener(t), definition(s.URL, patience(1500*time.Millisecond)), alice(), nil)
			res, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "work"})
			require.NoError(t, err)
			require.Equal(t, false, res.Response["isError"])
		})
	}
	t.Run("stdio", func(t *testing.T) {
		t.Parallel()
		def := stdio()
		def.ReadTimeout = 1500 * time.Millisecond
		res, err := open(t, newStdio(t), def, alice(), nil).Call(t.Context(), tools.Call{ID: "c", Name: "work"})
		require.NoError(t, err)
		require.Equal(t, false, res.Response["isError"])
	})
}

func TestSilentProcess(t *testing.T) {
	t.Parallel()
	def := stdio()
	def.ReadTimeout = 500 * time.Millisecond
	ts := open(t, newStdio(t), def, alice(), nil)
	start := time.Now()
	_, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "slow"})
	require.ErrorIs(t, err, tools.ErrUnknown)
	require.ErrorContains(t, err, "no answer in time")
	require.Less(t, time.Since(start), 5*time.Second)
	res, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "echo"})
	require.NoError(t, err, "a new process is started")
	require.Equal(t, false, res.Response["isError"])
}

// A process that does not read must not keep the call that writes to it.
func TestProcessThatDoesNotRead(t *testing.T) {
	t.Parallel()
	def := stdio()
	def.ReadTimeout = 500 * time.Millisecond
	ts := open(t, newStdio(t), def, alice(), nil)
	_, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "freeze"})
	require.ErrorIs(t, err, tools.ErrUnknown)
	start := time.Now()
	def = stdio()
	def.ReadTimeout = 2 * time.Second
	ts = open(t, newStdio(t), def, alice(), nil)
	done := make(chan error, 1)
	go func() {
		_, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "freeze"})
		done <- err
	}()
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = 'x'
	}
	_, err = ts.Call(t.Context(), echoCall("c", string(large)))
	require.Error(t, err)
	require.Error(t, <-done)
	require.Less(t, time.Since(start), 20*time.Second)
}

// A server that answers in JSON sends not even headers before the tool is done.
func TestReadTimeoutRulesOverHeaders(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{modern: true, json: true})
	guarded := safehttp.New(safehttp.Config{AllowLoopback: true, HeaderTimeout: 500 * time.Millisecond})
	t.Cleanup(guarded.CloseIdleConnections)
	o := newOpener(t, func(c *mcp.Config) { c.HTTP = guarded.Patient() })
	ts := open(t, o, definition(s.URL, patience(20*time.Second)), alice(), nil)
	res, err := ts.Call(t.Context(), tools.Call{ID: "c", Name: "work"})
	require.NoError(t, err)
	require.Equal(t, false, res.Response["isError"])
}

// Answers to a call that are none, or have no end, end it within seconds all the same.
func TestCallIsNotLeftHanging(t *testing.T) {
	t.Parallel()
	type answer = func(w http.ResponseWriter, r *http.Request, id string)
	plain := func(status int, kind, body string) answer {
		return func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			fmt.Fprint(w, body)
		}
	}
	endless := func(status int, header, kind, body string) answer {
		return func(w http.ResponseWriter, r *http.Request, _ string) {
			if header != "" {
				w.Header().Set("WWW-Authenticate", header)
			}
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(status)
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for r.Context().Err() == nil {
				fmt.Fprint(w, body)
				_ = http.NewResponseController(w).Flush()
				<-tick.C
			}
		}
	}
	for name, tt := range map[string]struct {
		answer answer
		says   string
		is     error // nil: a tools.Error
	}{
		"202":                {plain(202, "", ""), "no answer", tools.ErrUnknown},
		"204":                {plain(204, "", ""), "no answer", tools.ErrUnknown},
		"other id":           {plain(200, "application/json", `{"jsonrpc":"2.0","id":4711,"result":{"content":[]}}`), "no answer", tools.ErrUnknown},
		"error without id":   {plain(200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}`), "what?", nil},
		"not JSON-RPC":       {plain(200, "application/json", `{"ok":true}`), "no answer", tools.ErrUnknown},
		"not JSON":           {plain(200, "application/json", `{`), "no answer", tools.ErrUnknown},
		"a request":          {plain(200, "application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`), "no answer", tools.ErrUnknown},
		"other id in stream": {plain(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{\"content\":[]}}\n\n"), "no answer", tools.ErrUnknown},
		"endless 403":        {endless(403, "", "text/plain", "BODY"), "HTTP 403", nil},
		"endless 401":        {endless(401, "Bearer", "text/plain", "BODY"), "no login", nil},
		"endless 500":        {endless(500, "", "text/plain", "BODY"), "HTTP 500", tools.ErrUnknown},
		"endless 404":        {endless(404, "", "application/json", " "), "HTTP 404", nil},
		"silent 500": {func(w http.ResponseWriter, r *http.Request, _ string) {
			w.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, "HTTP 500", tools.ErrUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []wire{{legacy: true}, {modern: true}} {
				s := newServer(t, w)
				s.guard(func(w http.ResponseWriter, r *http.Request, q request) bool {
					if q.Method == "tools/call" {
						tt.answer(w, r, rpcID(q))
					}
					return q.Method == "tools/call"
				})
				b := holding("T1", 1)
				b.challenged = func(*broker, auth.Challenge) error { return &tools.Error{Message: "no login"} }
				ts := open(t, newOpener(t), definition(s.URL), alice(), b)
				start := time.Now()
				_, err := ts.Call(t.Context(), echoCall("c", "x"))
				require.Less(t, time.Since(start), 5*time.Second)
				require.ErrorContains(t, err, tt.says)
				require.NotContains(t, err.Error(), "BODY")
				var told *tools.Error
				if tt.is == nil {
					require.ErrorAs(t, err, &told)
				} else {
					require.NotErrorAs(t, err, &told)
					require.ErrorIs(t, err, tt.is)
				}
				require.Len(t, s.seen("tools/call"), 1)

				s.guard(nil)
				_, err = ts.Call(t.Context(), echoCall("c", "x"))
				require.NoError(t, err)
				require.LessOrEqual(t, len(s.seen("initialize")), 1, "the session is still good")
			}
		})
	}
}
