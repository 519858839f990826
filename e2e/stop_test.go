package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// slowServer is the environment variable that makes this binary an MCP server on its standard input, with a tool "dig" that
// runs until it is cancelled. It names a folder: "begun" and "ended" appear there, with the process's id.
const slowServer = "TARRY_TEST_SLOW_SERVER"

func serveSlowly(dir string) int {
	server := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
	mark := func(name string) error {
		return os.WriteFile(filepath.Join(dir, name), fmt.Append(nil, os.Getpid()), 0o600) //nolint:gosec // the folder is the test's
	}
	mcp.AddTool(server, &mcp.Tool{Name: "dig", Description: "Takes long."}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		if err := mark("begun"); err != nil {
			return nil, nil, err
		}
		<-ctx.Done()
		return nil, nil, mark("ended")
	})
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

// slow adds the toolset of a slow process to the agent "assistant".
func (o *options) slow(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir = t.TempDir()
	o.agents["assistant/root_agent.yaml"] += "  - name: McpToolset\n    args:\n      stdio_connection_params:\n        server_params:\n          command: " + self +
		"\n          env: {" + slowServer + ": " + dir + "}\n"
	o.worker = append(o.worker, "TARRY_ALLOW_STDIO=true")
	return dir
}

// callID finds the call of a tool in a session.
func callID(tb testing.TB, events []event, tool string) string {
	tb.Helper()
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == tool {
				return p.FunctionCall.ID
			}
		}
	}
	require.Fail(tb, "there is no call of "+tool)
	return ""
}

func (w *world) appears(path string) time.Time {
	w.t.Helper()
	w.eventually(path+" does not appear", func() bool {
		body, err := os.ReadFile(path)
		return err == nil && len(body) > 0
	})
	return time.Now()
}

// T31: single calls are cancelled, one that runs in a process and one that waits. The tool sees it within two seconds, the link
// takes no answer any more, the model is told, and the run goes on with the other results.
func TestCancelSingleCalls(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	o := single(call("note {text: hello}", "list_tickets", "dig") + text("Noted."))
	o.agents["assistant/root_agent.yaml"] += "  - name: McpToolset\n    args:\n      streamable_http_connection_params:\n        url: " + free.url + "\n"
	dir := o.slow(t)
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	w.appears(filepath.Join(dir, "begun"))
	var link string
	w.eventually("the login is not asked for", func() bool {
		s := r.status()
		if len(s.WaitingFor) == 1 {
			link = s.WaitingFor[0].Link
		}
		return link != "" && len(responses(r.events(), "note")) == 1
	})
	cancel := func(call string) int { return w.api.call("POST", r.path("/calls/"+call+"/cancel"), nil, nil) }
	require.Equal(t, http.StatusNotFound, cancel("adk-none"))
	require.Equal(t, http.StatusConflict, cancel(callID(t, r.events(), "note")))
	other := r
	other.user = "other"
	require.Equal(t, http.StatusNotFound, w.api.call("POST", other.path("/calls/"+callID(t, r.events(), "dig")+"/cancel"), nil, nil))

	asked := time.Now()
	require.Equal(t, http.StatusAccepted, cancel(callID(t, r.events(), "dig")))
	took := w.appears(filepath.Join(dir, "ended")).Sub(asked)
	t.Logf("the tool saw the cancellation after %s", took)
	if !raceDetector {
		require.Less(t, took, 2*time.Second)
	}
	w.eventually("the run does not wait", func() bool { return r.status().State == "waiting_credential" })
	require.Contains(t, responses(r.events(), "dig")[0].Response["error"], "The call was cancelled by the person.")

	require.Equal(t, http.StatusAccepted, cancel(callID(t, r.events(), "list_tickets")))
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Equal(t, "Noted.", s.Answer)
	require.False(t, s.Denied)
	require.Equal(t, "The call was cancelled by the person.", responses(r.events(), "list_tickets")[0].Response["error"])
	require.Equal(t, "Request cancelled", w.visit(demo.NewBrowser(), link).Title)
	require.Empty(t, w.mcp.Calls("list_tickets"))
	require.EqualValues(t, 1, free.calls.Load())
	require.Len(t, w.modelCalls(), 2)
	w.checkAnswers(r.events(), "cancelled calls")
	require.Equal(t, http.StatusConflict, cancel(callID(t, r.events(), "dig")))
}

// T31: when a run is cancelled, the process that works for it sees it within two seconds, the run is over, the session says so,
// and what was asked takes no answer.
func TestCancelReachesProcesses(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets", "dig") + text("never said"))
	dir := o.slow(t)
	w := newWorld(t, o)
	r := w.api.start("assistant", "Go.")
	w.appears(filepath.Join(dir, "begun"))
	var link string
	w.eventually("the login is not asked for", func() bool {
		s := r.status()
		if len(s.WaitingFor) == 1 {
			link = s.WaitingFor[0].Link
		}
		return link != ""
	})
	asked := time.Now()
	require.Equal(t, http.StatusAccepted, w.api.call("POST", r.path("/cancel"), nil, nil))
	took := w.appears(filepath.Join(dir, "ended")).Sub(asked)
	t.Logf("the tool saw the cancellation after %s", took)
	if !raceDetector {
		require.Less(t, took, 2*time.Second)
	}
	s := w.finished(r)
	require.Equal(t, "cancelled", s.InvocationStatus)
	events := r.events()
	require.Equal(t, "CANCELLED", events[len(events)-1].ErrorCode)
	require.True(t, strings.HasPrefix(responses(events, "dig")[0].Response["error"].(string), "The call was cancelled."))
	require.Equal(t, "Request cancelled", w.visit(demo.NewBrowser(), link).Title)
	w.checkAnswers(events, "cancelled run")
}
