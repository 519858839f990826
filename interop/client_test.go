//go:build interop

package interop_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
)

// run is a session of Tarry, over its HTTP API.
type run struct {
	w       *world
	app, id string
}

type runStatus struct {
	State            string
	Invocation       string
	InvocationStatus string `json:"invocation_status"`
	Answer           string
	Denied           bool
	ModelCalls       int          `json:"model_calls"`
	ToolCalls        int          `json:"tool_calls"`
	WaitingFor       []waitingFor `json:"waiting_for"`
}

type waitingFor struct{ Kind, Link, Tool string }

type event struct {
	Content struct {
		Parts []struct {
			FunctionCall     *function
			FunctionResponse *function
		}
	}
}

type function struct {
	ID, Name string
	Response map[string]any
}

// call returns the status, 0 while nobody listens.
func (w *world) call(method, path string, in, out any) int {
	w.t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		require.NoError(w.t, err)
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.URL()+path, body)
	require.NoError(w.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(w.t, err)
	if out != nil && resp.StatusCode < 300 {
		require.NoError(w.t, json.Unmarshal(text, out), string(text))
	}
	return resp.StatusCode
}

// start starts a job of an app.
func (w *world) start(app, task string) run {
	w.t.Helper()
	var out struct{ Session string }
	status := w.call("POST", "/apps/"+app+"/users/alice/runs", map[string]string{"task": task}, &out)
	require.Equal(w.t, http.StatusAccepted, status)
	return run{w, app, out.Session}
}

func (r run) get(what string, out any) int {
	r.w.t.Helper()
	return r.w.call("GET", "/apps/"+r.app+"/users/alice/sessions/"+r.id+what, nil, out)
}

func (r run) status() (s runStatus) {
	r.w.t.Helper()
	r.get("/status", &s)
	return s
}

// waiting waits until the run waits for a login other than those in not, and returns its link.
func (r run) waiting(not ...string) (link string) {
	r.w.t.Helper()
	return r.waits("waiting_credential", not)
}

// asked is waiting for what a server wants of the person.
func (r run) asked(not ...string) (link string) {
	r.w.t.Helper()
	return r.waits("waiting_input", not)
}

func (r run) waits(state string, not []string) (link string) {
	r.w.t.Helper()
	r.w.eventually("the run does not get to "+state, func() bool {
		s := r.status()
		if s.State != state {
			return false
		}
		i := slices.IndexFunc(s.WaitingFor, func(f waitingFor) bool { return !slices.Contains(not, f.Link) })
		if i >= 0 {
			link = s.WaitingFor[i].Link
		}
		return i >= 0
	})
	return link
}

// finished waits for the end of the run and that it went well.
func (r run) finished() (s runStatus) {
	r.w.t.Helper()
	r.w.eventually("the run does not end", func() bool {
		s = r.status()
		return s.InvocationStatus != "" && s.InvocationStatus != "queued" && s.InvocationStatus != "running"
	})
	require.Equal(r.w.t, "done", s.InvocationStatus)
	return s
}

// functions returns calls and responses of a function, "" for every one, in order.
func (r run) functions(name string) (calls, responses []*function) {
	r.w.t.Helper()
	var events []event
	require.Equal(r.w.t, http.StatusOK, r.get("/events", &events))
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if f := p.FunctionCall; f != nil && (name == "" || f.Name == name) {
				calls = append(calls, f)
			}
			if f := p.FunctionResponse; f != nil && (name == "" || f.Name == name) {
				responses = append(responses, f)
			}
		}
	}
	return calls, responses
}

// logins counts how often the run has asked for a login.
func (r run) logins() int {
	r.w.t.Helper()
	calls, _ := r.functions("adk_request_credential")
	return len(calls)
}

func (w *world) eventually(what string, f func() bool) {
	w.t.Helper()
	require.Eventually(w.t, f, patience, 50*time.Millisecond, what)
}
