package e2e_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/replay"
	"tarry/wire"
)

// histories are those of all runs of a workflow, the first one first.
func (m *matrix) histories(workflow string) (out []*historypb.History) {
	m.t.Helper()
	for run := ""; ; {
		h := &historypb.History{}
		for i := m.temporal.GetWorkflowHistory(m.t.Context(), workflow, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
			e, err := i.Next()
			require.NoError(m.t, err)
			h.Events = append(h.Events, e)
		}
		out = append([]*historypb.History{h}, out...)
		if run = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
			return out
		}
	}
}

// decoded is a message of Temporal's as text, payloads included.
func decoded(t *testing.T, h *historypb.History) []byte {
	t.Helper()
	body, err := protojson.Marshal(h)
	require.NoError(t, err)
	for _, field := range bytes.Split(body, []byte(`"`)) {
		if plain, err := base64.StdEncoding.DecodeString(string(field)); err == nil {
			body = append(append(body, '\n'), plain...)
		}
	}
	return body
}

// The canary of the kinds of agents and waits: agents behind tools, custom agents, questions, approvals and long-running calls,
// through a crash and a run that continues as new while all of them wait. No token stands anywhere, and nothing of what was
// said, asked or answered in a history, a memo or a log. What is exported does not tell whose it was either.
func TestNoContentLeaks(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	m.eventually("the app is not published", func() bool { return len(m.query(`SELECT app FROM apps WHERE app = 'canary'`)) == 1 })
	const user = "canary-user"
	r := m.api.startAs(user, "canary", map[string]string{"task": canaryContent})
	const many = 5
	all := func() bool { return len(r.status().WaitingFor) == many }
	m.eventually("the calls do not wait", all)
	m.kill()
	post := func(want int, path string, body any) {
		t.Helper()
		require.Equal(t, want, r.c.call("POST", r.path(path), body, nil))
	}
	for _, open := range r.status().WaitingFor { // while nobody is there
		if open.Kind == "question" && open.Tool == "request_input" {
			post(http.StatusUnprocessableEntity, "/inputs/"+open.Request, map[string]any{"response": canaryContent + " 1"})
			page := m.answer2(open.Link, canaryContent+" 2")
			require.Contains(t, page.Text, canaryContent, "what is wrong is shown to the person")
		}
	}
	m.start()
	workflow := m.workflowOf(r)
	require.NoError(t, m.temporal.SignalWorkflow(t.Context(), workflow, "", wire.SignalContinueAsNew, nil))
	m.eventually("the run does not continue as new", func() bool { return m.chain(m.temporal, workflow) == 2 })

	answered := map[string]bool{}
	m.eventually("the run does not end", func() bool {
		s := r.status()
		for _, open := range s.WaitingFor {
			if answered[open.Request] {
				continue
			}
			answered[open.Request] = true
			switch open.Kind {
			case "login":
				require.Contains(t, m.loginAs(open.Link, "alice").Title, "Connected")
			case "confirmation":
				post(http.StatusOK, "/confirmations/"+open.Request, map[string]any{"confirmed": true, "payload": canaryContent})
			case "question":
				post(http.StatusOK, "/inputs/"+open.Request, map[string]any{"response": canaryContent + " answer"})
			case "result":
				post(http.StatusOK, "/calls/"+open.Request+"/result", map[string]any{"response": canaryContent, "interim": true})
				post(http.StatusOK, "/calls/"+open.Request+"/result", map[string]any{"response": map[string]any{"status": canaryContent}})
			default:
				require.Fail(t, "an unknown kind of wait", open.Kind)
			}
		}
		return s.InvocationStatus == "failed" || s.InvocationStatus == "done"
	})
	require.Equal(t, "failed", r.status().InvocationStatus)
	require.Len(t, answered, many+2)
	require.GreaterOrEqual(t, bytes.Count((&recorder{http.DefaultTransport}).get(t, m.URL()+r.path("/events")), []byte(canaryContent)), 15, "it is in the session")

	m.checkContent(t, r, workflow)
	m.checkExport(t, r, workflow)
}

// answer2 fills in the form of a question that is one text.
func (w *world) answer2(link, answer string) *demo.Page {
	w.t.Helper()
	b := demo.NewBrowser()
	page, err := b.Open(w.t.Context(), link)
	require.NoError(w.t, err)
	require.Len(w.t, page.Forms, 1, page.Text)
	page, err = b.Submit(w.t.Context(), page, page.Forms[0], map[string]string{"field-0-0": answer}, page.Forms[0].Button("accept"))
	require.NoError(w.t, err)
	return page
}

// checkContent looks everywhere but in the session for what was said in it, and everywhere for tokens. The journal is the test's
// own: what models were asked.
func (m *matrix) checkContent(t *testing.T, r runHandle, workflow string) {
	t.Helper()
	kept := map[string][]byte{"history": r.history()}
	for i, h := range m.histories(workflow) {
		kept[fmt.Sprint("run ", i)] = decoded(t, h)
		for _, e := range h.GetEvents() {
			if run := e.GetWorkflowExecutionStartedEventAttributes().GetOriginalExecutionRunId(); run != "" {
				about, err := m.temporal.DescribeWorkflow(t.Context(), workflow, run)
				require.NoError(t, err)
				kept[fmt.Sprint("memo of run ", i)] = []byte(about.RawResponse.String())
			}
		}
	}
	require.NoError(t, filepath.WalkDir(m.dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			kept[path], err = os.ReadFile(path) //nolint:gosec // the test's own folder
		}
		return err
	}))
	require.Contains(t, kept, m.LogFile(stack.Server))
	require.Contains(t, kept, m.log.Name())
	secrets := m.provider.Secrets().All()
	require.NotEmpty(t, secrets)
	for where, body := range kept {
		for _, secret := range append(secrets, demo.DefaultMark) {
			require.False(t, bytes.Contains(body, []byte(secret)), "a secret stands in %s", where)
		}
		if !strings.HasPrefix(where, m.Database()) && where != m.journal() {
			require.False(t, bytes.Contains(body, []byte(canaryContent)), "content stands in %s: …%s…", where, around(body, canaryContent))
		}
	}
}

// checkExport looks for whose a redacted run was.
func (m *matrix) checkExport(t *testing.T, r runHandle, workflow string) {
	t.Helper()
	histories := m.histories(workflow)
	require.Len(t, histories, 2)
	redacted, err := replay.Redact(histories...)
	require.NoError(t, err)
	host, err := os.Hostname()
	require.NoError(t, err)
	telling := append(m.query(`SELECT id FROM calls UNION SELECT id FROM requests UNION SELECT id FROM events UNION SELECT id FROM invocations UNION SELECT run FROM runs`),
		r.user, r.id, workflow, strings.Split(workflow, "/")[2], host)
	require.Greater(t, len(telling), 30)
	for _, h := range redacted {
		for _, word := range telling {
			require.False(t, bytes.Contains(decoded(t, h), []byte(word)), "%s stands in a redacted history", word)
		}
	}
}
