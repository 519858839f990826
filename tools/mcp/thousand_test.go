package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/tools/mcp"
)

// fates of a call; the idempotency key tells the server which.
var fates = []string{"ok", "failing", "ok", "cancel", "401", "403", "ok", "500", "broken", "unanswered"}

// fate answers a call as its key wants.
func fate(w http.ResponseWriter, _ *http.Request, q request) bool {
	is := func(name string) bool { return strings.Contains(q.Body, `"tarry/idempotencyKey":"`+name+`-`) }
	switch {
	case q.Method != "tools/call":
		return false
	case is("401"):
		w.Header().Set("WWW-Authenticate", challenge)
		w.WriteHeader(http.StatusUnauthorized)
	case is("403"):
		w.WriteHeader(http.StatusForbidden)
	case is("500"):
		w.WriteHeader(http.StatusInternalServerError)
	case is("broken"):
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"jsonrpc\"")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case is("unanswered"):
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
	default:
		return false
	}
	return true
}

// suffer makes a call and says what is wrong with its end. lenient: connections are cut at random.
func suffer(ctx context.Context, ts tools.Toolset, kind string, i int, lenient bool) (ok bool, _ error) {
	call := echoCall(fmt.Sprintf("%s-%d", kind, i), "x")
	switch kind {
	case "failing":
		call.Name, call.Args = "failing", nil
	case "die":
		call.Name, call.Args = "die", nil
	case "cancel":
		call.Name, call.Args = "slow", nil
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 30*time.Millisecond)
		defer cancel()
	}
	res, err := ts.Call(ctx, call)
	var required *auth.RequiredError
	var told *tools.Error
	switch {
	case kind == "ok" && err == nil, kind == "failing" && err == nil && res.Response["isError"] == true,
		kind == "cancel" && errors.Is(err, context.DeadlineExceeded), kind == "401" && errors.As(err, &required), kind == "403" && errors.As(err, &told):
		return true, nil
	case (kind == "500" || kind == "broken" || kind == "unanswered" || kind == "die") && errors.Is(err, tools.ErrUnknown):
		return true, nil
	case lenient && (errors.Is(err, tools.ErrUnknown) || errors.Is(err, tools.ErrNotExecuted)):
		return false, nil
	}
	return false, fmt.Errorf("call %s: %w", call.ID, err)
}

// many makes n calls, 16 at a time, each with a toolset of its own, as the worker does.
func many(t *testing.T, n int, o *mcp.Opener, def *agent.MCPToolset, kind func(i int) string, each func(i int), lenient bool) {
	t.Helper()
	var wg sync.WaitGroup
	var good atomic.Int64
	next := make(chan int)
	errs := make(chan error, n)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				ts, err := o.Open(t.Context(), def, alice(), holding("T1", 1))
				if err == nil {
					var ok bool
					if ok, err = suffer(t.Context(), ts, kind(i), i, lenient); ok {
						good.Add(1)
					}
				}
				if err != nil {
					errs <- err
				}
			}
		})
	}
	for i := range n {
		next <- i
		each(i)
	}
	close(next)
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Greater(t, good.Load(), int64(n/2))
}

// busy counts the goroutines of clients: ours, go-sdk's and those of HTTP connections.
func busy() int {
	buf := make([]byte, 16<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	ours := regexp.MustCompile(`tarry/tools/mcp\.|streamableClientConn|sseClientConn|mcp\.\(\*ioConn\)|newIOConn|pipeRWC|http\.\(\*persistConn\)`)
	n := 0
	for _, s := range stacks {
		if ours.MatchString(s) && !strings.Contains(s, "testing.tRunner") {
			n++
		}
	}
	return n
}

// files counts open file descriptors, children the processes that this one started; -1 where /proc is not there.
func files() int {
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(all)
}

func children() int {
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(all) == 0 {
		return -1
	}
	n := 0
	for _, name := range all {
		raw, _ := os.ReadFile(name)
		_, rest, _ := strings.Cut(string(raw), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == fmt.Sprint(os.Getpid()) {
			n++
		}
	}
	return n
}

func soon(t *testing.T, what string, want, slack int, get func() int) {
	t.Helper()
	require.Eventually(t, func() bool { return get() <= want+slack }, 15*time.Second, 20*time.Millisecond, what)
}

func TestThousandCallsLeaveNothing(t *testing.T) {
	for name, w := range map[string]wire{"2025": {legacy: true}, "2026": {modern: true}, "sse": {legacy: true, sse: true}} {
		for _, cut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s cut=%v", name, cut), func(t *testing.T) {
				s := newServer(t, w)
				s.entered, s.canceled = make(chan string, 2000), make(chan string, 2000)
				s.guard(fate)
				fds := files()
				o, sockets := newCounted(t)
				n := 1000
				if cut {
					n = 300
				}
				many(t, n, o, definition(s.URL, patience(10*time.Second)), func(i int) string {
					if kind := fates[i%len(fates)]; !w.sse || kind != "unanswered" && kind != "broken" {
						return kind
					}
					return "ok" // of an SSE server's answer to a POST nothing but the status is read
				}, func(i int) {
					if cut && i%50 == 25 {
						s.CloseClientConnections()
					}
				}, cut || w.sse) // net/http: cancelling a request can break the next one on its connection when the answer has no body
				// The idle connections of the HTTP client, at most 8, have two goroutines each.
				soon(t, "goroutines", 8*2+4, 0, busy)
				soon(t, "sockets", 9, 0, func() int { return int(sockets.open.Load()) })
				if !cut {
					require.LessOrEqual(t, len(s.seen("initialize"))+len(s.seen("server/discover")), 2, "one session for all")
				}
				_, err := open(t, o, definition(s.URL, patience(10*time.Second)), alice(), nil).Call(t.Context(), echoCall("last", "x"))
				require.NoError(t, err)

				require.NoError(t, o.Close())
				sockets.idle()
				soon(t, "goroutines after Close", 0, 0, busy)
				soon(t, "sockets after Close", 0, 0, func() int { return int(sockets.open.Load()) })
				s.release() // go-sdk's server waits for tools whose cancellation came before the call, or whose stream was cut
				soon(t, "the server's connections", 0, 0, func() int { return int(s.conns.Load()) })
				soon(t, "file descriptors", fds, 2, files)
			})
		}
	}
}

func TestThousandCallsOfAProcess(t *testing.T) {
	fds := files()
	o := newStdio(t)
	many(t, 1000, o, stdio(), func(i int) string {
		if i%97 == 50 {
			return "die"
		}
		return []string{"ok", "failing", "ok", "cancel"}[i%4]
	}, func(int) {}, true)
	soon(t, "processes", 1, 0, children)
	require.NoError(t, o.Close())
	soon(t, "processes after Close", 0, 0, children)
	soon(t, "goroutines after Close", 0, 0, busy)
	soon(t, "file descriptors", fds, 2, files)
}
