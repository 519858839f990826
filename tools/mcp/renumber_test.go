package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/tools"
)

// Two connections, as of two processes that make one call: no request has the id of another.
func TestIDsOfTwoConnectionsDiffer(t *testing.T) {
	t.Parallel()
	for name, w := range wires() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, w)
			ids := map[string]bool{}
			for i := range 2 {
				res, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("call-1", "x"))
				require.NoError(t, err)
				require.Equal(t, "x/call-1/", text(t, res))
				require.Len(t, s.seen("tools/call"), i+1)
			}
			requests := 0
			for _, q := range s.seen(http.MethodPost) {
				id := rpcID(q)
				if id == "" {
					continue // a notification
				}
				n, err := strconv.ParseInt(id, 10, 64)
				require.NoError(t, err)
				require.Less(t, n, int64(1)<<53, "JavaScript keeps it")
				ids[id] = true
				requests++
			}
			require.Len(t, ids, requests)
		})
	}
}

func TestACancellationNamesItsRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t, wire{legacy: true})
	ts := open(t, newOpener(t), definition(s.URL), alice(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-s.entered
		cancel()
	}()
	_, err := ts.Call(ctx, tools.Call{ID: "call-1", Name: "slow", Args: json.RawMessage(`{}`)})
	require.Error(t, err)
	require.Eventually(t, func() bool { return len(s.seen("notifications/cancelled")) == 1 }, 20*time.Second, 10*time.Millisecond)
	require.Equal(t, rpcID(s.seen("tools/call")[0]), fmt.Sprint(number(t, params(t, s.seen("notifications/cancelled")[0])["requestId"])))
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	n, ok := v.(float64)
	require.True(t, ok)
	return int64(n)
}

// What servers may do in an event stream (HTML standard) reaches the call.
func TestAnswersInEventStreams(t *testing.T) {
	t.Parallel()
	const answer = `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","content":[{"type":"text","text":"é <&> \u2028"}]}}`
	for name, stream := range map[string]func(id string) string{
		"plain":       func(id string) string { return "data: " + fmt.Sprintf(answer, id) + "\n\n" },
		"no space":    func(id string) string { return "data:" + fmt.Sprintf(answer, id) + "\n\n" },
		"CRLF":        func(id string) string { return "event: message\r\ndata: " + fmt.Sprintf(answer, id) + "\r\n\r\n" },
		"id after it": func(id string) string { return "data: " + fmt.Sprintf(answer, id) + "\nid: 7\n\n" },
		"comments, an empty event and another message first": func(id string) string {
			return ": hello\n\nid: 1\nretry: 10\ndata: \n\n" + `data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` +
				"\n\ndata: " + fmt.Sprintf(answer, id) + "\n\n"
		},
		"several lines": func(id string) string {
			lines := strings.ReplaceAll(fmt.Sprintf(answer, id), `,"`, ",\n\"")
			return "data: " + strings.ReplaceAll(lines, "\n", "\ndata: ") + "\n\n"
		},
		"large": func(id string) string {
			return "data: " + strings.Repeat(" ", 100_000) + fmt.Sprintf(answer, id) + "\n\n"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, wire{modern: true})
			s.guard(func(w http.ResponseWriter, _ *http.Request, q request) bool {
				if q.Method != "tools/call" {
					return false
				}
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprint(w, stream(rpcID(q)))
				return true
			})
			res, err := open(t, newOpener(t), definition(s.URL), alice(), nil).Call(t.Context(), echoCall("call-1", "x"))
			require.NoError(t, err)
			require.Equal(t, "é <&> \u2028", text(t, res))
		})
	}
}
