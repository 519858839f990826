package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/openapi/openapitest"
)

// apiClient speaks the HTTP API.
type apiClient struct {
	t    testing.TB
	base string
	host string // as which the server is asked; empty: as base says
	// token is sent as bearer token.
	token string
}

func (c apiClient) call(method, path string, in, out any) int {
	c.t.Helper()
	status, _ := c.send(method, path, in, out)
	return status
}

// http is a client that holds answers against the OpenAPI document.
func (c apiClient) http() *http.Client {
	c.t.Helper()
	return &http.Client{Transport: openapitest.Transport(c.t, http.DefaultTransport)}
}

// send is call, with the answer's header.
func (c apiClient) send(method, path string, in, out any) (int, http.Header) {
	c.t.Helper()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		require.NoError(c.t, err)
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, body)
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Host = c.host
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http().Do(req)
	if err != nil {
		return 0, nil
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	if out != nil && resp.StatusCode < 300 {
		require.NoError(c.t, json.Unmarshal(text, out), string(text))
	}
	if resp.StatusCode >= 400 {
		c.t.Logf("%s %s: %d %s", method, path, resp.StatusCode, text)
	}
	return resp.StatusCode, resp.Header
}

// start starts a job.
func (c apiClient) start(app, task string) runHandle {
	c.t.Helper()
	return c.startAs("user", app, map[string]string{"task": task})
}

// startAs posts a message for a user: in "task", with "mode" and "session" if they are given.
func (c apiClient) startAs(user, app string, in map[string]string) runHandle {
	c.t.Helper()
	var out struct{ Session string }
	require.Equal(c.t, http.StatusAccepted, c.call("POST", "/apps/"+app+"/users/"+user+"/runs", in, &out))
	return runHandle{c, app, user, out.Session}
}

type runHandle struct {
	c             apiClient
	app, user, id string
}

type runStatus struct {
	State            string
	Invocation       string
	InvocationStatus string `json:"invocation_status"`
	Answer           string
	Denied           bool
	ModelCalls       int                                                   `json:"model_calls"`
	ToolCalls        int                                                   `json:"tool_calls"`
	WaitingFor       []struct{ Kind, Request, Link, Tool, Toolset string } `json:"waiting_for"`
}

func (r runHandle) path(of string) string {
	return "/apps/" + r.app + "/users/" + r.user + "/sessions/" + r.id + of
}

func (r runHandle) status() (s runStatus) {
	r.c.t.Helper()
	r.c.call("GET", r.path("/status"), nil, &s)
	return s
}

type event struct {
	ID, Author, InvocationID string
	Branch                   string
	ErrorCode, ErrorMessage  string
	CustomMetadata           map[string]any
	LongRunningToolIDs       []string `json:"longRunningToolIds"`
	Content                  struct {
		Role  string
		Parts []struct {
			Text             string
			FunctionCall     *function
			FunctionResponse *function
		}
	}
	Actions struct {
		StateDelta    map[string]any
		ArtifactDelta map[string]int
		Escalate      bool
	}
}

type function struct {
	ID, Name string
	Args     map[string]any
	Response map[string]any
	// WillContinue marks an interim result of a long-running call, which is no answer.
	WillContinue bool
}

func (r runHandle) events() (out []event) {
	r.c.t.Helper()
	for path, more := r.path("/events"), true; more; {
		var page []event
		status, header := r.c.send("GET", path, nil, &page)
		require.Equal(r.c.t, http.StatusOK, status)
		out = append(out, page...)
		path, more = strings.CutSuffix(strings.TrimPrefix(header.Get("Link"), "<"), `>; rel="next"`)
	}
	return out
}

// asks lists the ids of the login requests in a session's events.
func asks(events []event) (ids []string) {
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_credential" {
				ids = append(ids, p.FunctionCall.ID)
			}
		}
	}
	return ids
}

// responses lists the results of a tool in a session's events.
func responses(events []event, tool string) (out []*function) {
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionResponse != nil && p.FunctionResponse.Name == tool {
				out = append(out, p.FunctionResponse)
			}
		}
	}
	return out
}

func (r runHandle) history() []byte {
	r.c.t.Helper()
	var out json.RawMessage
	require.Equal(r.c.t, http.StatusOK, r.c.call("GET", r.path("/history"), nil, &out))
	return out
}
