package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry"
	"tarry/agent"
	"tarry/auth/oauth"
	"tarry/internal/demo"
	grid "tarry/internal/matrix"
	"tarry/internal/stack"
	"tarry/models"
	"tarry/models/scripted"
	"tarry/replay"
	"tarry/wire"
)

func matrixLogin(lookup func(string) string) agent.Auth {
	return agent.Auth{
		Key: "matrix", Type: agent.AuthOAuth2, AuthorizationURL: lookup("MATRIX_AUTHORIZE_URL"), TokenURL: lookup("MATRIX_TOKEN_URL"),
		Resource: "https://matrix.example", ClientID: "matrix-cli", ClientAuth: "none", Scopes: []string{"tickets:read"},
	}
}

// matrixWorker says whether this process is the worker of the matrix.
func matrixWorker() bool { return os.Getenv("MATRIX_TOKEN_URL") != "" }

// TestMatrixWorker is the worker of the matrix, in a process of its own that can be killed; by itself it does nothing.
func TestMatrixWorker(t *testing.T) {
	if !matrixWorker() {
		return
	}
	app, err := grid.App(matrixLogin(os.Getenv))
	require.NoError(t, err)
	require.NoError(t, addCanary(&app))
	for _, model := range []string{"matrix", "canary"} {
		made := app.Models[model]
		app.Models[model] = func(ctx context.Context, name string) (models.Model, error) {
			m, err := made(ctx, name)
			return scripted.Observed(m, os.Getenv("TARRY_SCRIPT_JOURNAL")), err
		}
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	require.NoError(t, tarry.Run(ctx, app, client.Options{HostPort: os.Getenv("TEMPORAL_ADDRESS")}, os.LookupEnv, slog.New(slog.NewJSONHandler(os.Stderr, nil))))
}

// matrix is a service whose worker is TestMatrixWorker.
type matrix struct {
	*world
	worker   *exec.Cmd
	log      *os.File
	temporal client.Client
}

func newMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{world: newWorld(t, single(text("unused")))}
	m.provider.AddClient(demo.Client{
		ID: "matrix-cli", AuthMethod: demo.AuthNone,
		RedirectURIs: []string{m.URL() + oauth.CallbackPath(strings.TrimSuffix(m.provider.TokenURL(), "/token"))},
	})
	require.NoError(t, m.Kill(stack.Worker))
	m.temporal = m.world.temporal()
	var err error
	m.log, err = os.Create(filepath.Join(m.dir, "matrix.log"))
	require.NoError(t, err)
	m.start()
	t.Cleanup(func() {
		_ = m.worker.Process.Signal(syscall.SIGTERM)
		err := m.worker.Wait()
		body, readErr := os.ReadFile(m.log.Name())
		require.NoError(t, readErr)
		if t.Failed() {
			t.Logf("%s", body[max(0, len(body)-8000):])
		}
		require.NoError(t, err, "%s", body)
		require.NotContains(t, string(body), demo.DefaultMark)
		require.NotContains(t, string(body), canaryContent)
	})
	m.eventually("the apps are not published", func() bool {
		return len(m.query(`SELECT app FROM apps WHERE app LIKE '%!_long!_running' ESCAPE '!'`)) == 7
	})
	return m
}

func (m *matrix) start() {
	m.t.Helper()
	self, err := os.Executable()
	require.NoError(m.t, err)
	m.worker = exec.CommandContext(context.WithoutCancel(m.t.Context()), self, "-test.run=^TestMatrixWorker$", "-test.timeout=30m")
	m.worker.Env = []string{
		"HOME=" + m.dir, "PATH=" + os.Getenv("PATH"), "TEMPORAL_ADDRESS=" + m.Addr(stack.Temporal), "TARRY_DATABASE_URL=" + m.Database(), "TARRY_DATA_DIR=" + filepath.Join(m.dir, "data"),
		"TARRY_PUBLIC_URL=" + m.URL(), "TARRY_DEV=true", "TARRY_SCRIPT_JOURNAL=" + m.journal(), "MATRIX_AUTHORIZE_URL=" + m.provider.AuthorizeURL(), "MATRIX_TOKEN_URL=" + m.provider.TokenURL(),
	}
	m.worker.Stdout, m.worker.Stderr = m.log, m.log
	require.NoError(m.t, m.worker.Start())
}

func (m *matrix) kill() {
	m.t.Helper()
	require.NoError(m.t, m.worker.Process.Kill())
	require.Error(m.t, m.worker.Wait())
}

// answer answers everything that a run waits for.
func (m *matrix) answer(r runHandle, wait string, answered map[string]bool) {
	m.t.Helper()
	for _, open := range r.status().WaitingFor {
		if answered[open.Request] {
			continue
		}
		answered[open.Request] = true
		post := func(path string, body any) {
			require.Equal(m.t, http.StatusOK, r.c.call("POST", r.path(path), body, nil))
		}
		switch wait {
		case "credential":
			page := m.loginAs(open.Link, "alice")
			require.Contains(m.t, page.Title, "Connected", page)
		case "confirmation":
			post("/confirmations/"+open.Request, map[string]any{"confirmed": true})
		case "input":
			post("/inputs/"+open.Request, map[string]any{"response": 12})
		case "long_running":
			post("/calls/"+open.Request+"/result", map[string]any{"response": map[string]any{"status": "halfway"}, "interim": true})
			post("/calls/"+open.Request+"/result", map[string]any{"response": map[string]any{"status": "done"}})
		}
	}
}

// finish answers until the run ends.
func (m *matrix) finish(r runHandle, wait string) {
	m.t.Helper()
	answered := map[string]bool{}
	defer func() {
		if m.t.Failed() {
			m.t.Logf("%s: %+v", r.app, r.status())
		}
	}()
	m.eventually("the run does not end", func() bool {
		s := r.status()
		if s.InvocationStatus == "running" && strings.HasPrefix(s.State, "waiting_") {
			m.answer(r, wait, answered)
		}
		return s.InvocationStatus != "" && s.InvocationStatus != "queued" && s.InvocationStatus != "running"
	})
	require.Equal(m.t, "done", r.status().InvocationStatus)
}

// session is what was said, in order, without ids. What runs side by side is said in any order.
func (m *matrix) session(r runHandle, kind string) []string {
	m.t.Helper()
	var lines []string
	for _, e := range r.events() {
		for _, p := range e.Content.Parts {
			line := e.Author + "|" + e.Branch + "|" + p.Text
			for _, f := range []*function{p.FunctionCall, p.FunctionResponse} {
				if f == nil {
					continue
				}
				args := maps.Clone(f.Args)
				if strings.HasPrefix(f.Name, "adk_request_") {
					args = map[string]any{"asked": true}
				}
				body, err := json.Marshal([]any{args, f.Response})
				require.NoError(m.t, err)
				line += f.Name + string(body)
			}
			lines = append(lines, fmt.Sprint(line, e.Actions.StateDelta))
		}
	}
	if kind == "parallel" {
		slices.Sort(lines)
	}
	return lines
}

// matrixWants is what must be in a session, whatever the fault.
func matrixWants(kind, wait string) []string {
	got := map[string]string{
		"credential": `{"result":"was read"}`, "confirmation": `{"result":"paid 3"}`, "long_running": `{"status":"done"}`, "input": `{"response":12}`,
	}[wait]
	out := []string{"asker got " + got}
	switch kind {
	case "custom":
		out = append(out, "the flow got "+got)
	case "agent_tool":
		out = append(out, `caller got {"result":"asker got`)
	case "transfer":
		out = append(out, "desk||transfer_to_agent")
	case "sequential":
		out = append(out, "after sequence")
	}
	return out
}

// matrixFixtures are the cells whose histories become fixtures, with go test ./e2e -run TestMatrix -update.
func matrixFixtures() []string {
	return []string{"agent_tool_credential", "custom_input", "custom_credential", "loop_long_running", "parallel_confirmation", "sequential_input", "transfer_confirmation"}
}

// Every kind of agent with every kind of wait ends in the same session: undisturbed, with the worker killed while all wait, and
// when each continues as a new run while it waits.
func TestMatrix(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	type cell struct {
		kind, wait string
		run        runHandle
	}
	start := func(fault string) (cells []cell) {
		for _, wait := range slices.Sorted(maps.Keys(grid.WaitTools())) {
			for _, kind := range slices.Sorted(maps.Keys(grid.Kinds("read", wait))) {
				user := strings.ReplaceAll(kind+"-"+wait+"-"+fault, "_", "-")
				cells = append(cells, cell{kind, wait, m.api.startAs(user, kind+"_"+wait, map[string]string{"task": "Go on."})})
			}
		}
		for _, c := range cells {
			m.waiting(c.run)
		}
		return cells
	}
	agents, err := grid.App(matrixLogin(func(string) string { return "https://login.example/x" }))
	require.NoError(t, err)
	replayer := replay.Replayer{Agents: agents.CustomAgents}
	sessions := map[string][]string{}
	for _, fault := range []struct {
		name   string
		strike func(cells []cell)
	}{
		{"none", func([]cell) {}},
		{"killed", func([]cell) { m.kill(); m.start() }},
		{"continued", func(cells []cell) {
			for _, c := range cells {
				require.NoError(t, m.temporal.SignalWorkflow(t.Context(), m.workflowOf(c.run), "", wire.SignalContinueAsNew, nil))
			}
			for _, c := range cells {
				m.eventually("the run does not continue as new", func() bool { return m.chain(m.temporal, m.workflowOf(c.run)) == 2 })
			}
		}},
	} {
		cells := start(fault.name)
		fault.strike(cells)
		for _, c := range cells {
			m.finish(c.run, c.wait)
			got := m.session(c.run, c.kind)
			name := c.kind + " × " + c.wait
			require.NotEmpty(t, got, name)
			for _, want := range matrixWants(c.kind, c.wait) {
				require.Contains(t, strings.Join(got, "\n"), want, name)
			}
			if fault.name == "none" {
				sessions[name] = got
			}
			require.Equal(t, sessions[name], got, "%s × %s", name, fault.name)
			_, err := replayer.Reader(t.Context(), strings.NewReader(string(c.run.history())))
			require.NoError(t, err, "%s × %s", name, fault.name)
			if slices.Contains(matrixFixtures(), c.kind+"_"+c.wait) && fault.name == "continued" {
				recording{w: m.world, run: c.run, temporal: m.temporal, agents: agents.CustomAgents}.write(c.kind + "_" + c.wait)
			}
		}
	}
	require.Len(t, sessions, 28)
}
