package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// sse posts to /run_sse as ADK's web UI does and returns the events of the answer. stop ends the request after the first.
func (c apiClient) sse(body any, stop bool) (status int, out []event) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	resp := c.openSSE(ctx, body)
	defer resp.Body.Close()
	return resp.StatusCode, c.readSSE(resp, stop)
}

// openSSE returns when the server has taken the request, or refused it.
func (c apiClient) openSSE(ctx context.Context, body any) *http.Response {
	c.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(c.t, err)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/run_sse", bytes.NewReader(text))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http().Do(req)
	require.NoError(c.t, err)
	return resp
}

func (c apiClient) readSSE(resp *http.Response, stop bool) (out []event) {
	c.t.Helper()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data:")
		if !ok {
			continue
		}
		var e event
		require.NoError(c.t, json.Unmarshal([]byte(data), &e))
		out = append(out, e)
		if stop {
			return out
		}
	}
	return out
}

func message(sessionID string, parts ...any) map[string]any {
	return map[string]any{
		"appName": "assistant", "userId": "user", "sessionId": sessionID, "streaming": false, "stateDelta": nil,
		"newMessage": map[string]any{"role": "user", "parts": parts},
	}
}

// A client made for ADK: create a session, send a message, open authUri with its own redirect_uri appended, log in, send
// the function response back, read the rest (pitfalls P24, P25, P29).
func TestADKClientLogsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("Four tickets.")))
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{"state": map[string]any{}}, &session))
	status, events := w.api.sse(message(session.ID, map[string]string{"text": "Which tickets?"}), false)
	require.Equal(t, http.StatusOK, status)
	last := events[len(events)-1]
	require.Len(t, last.LongRunningToolIDs, 1)
	asked := last.Content.Parts[0].FunctionCall
	require.Equal(t, "adk_request_credential", asked.Name)
	config := asked.Args["authConfig"].(map[string]any)
	oauth := config["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any)
	link := oauth["authUri"].(string)

	reply := func(change func(config, oauth map[string]any)) map[string]any {
		body, err := json.Marshal(config)
		require.NoError(t, err)
		var copied map[string]any
		require.NoError(t, json.Unmarshal(body, &copied))
		change(copied, copied["exchangedAuthCredential"].(map[string]any)["oauth2"].(map[string]any))
		return message(session.ID, map[string]any{"functionResponse": map[string]any{"id": asked.ID, "name": asked.Name, "response": copied}})
	}
	for name, change := range map[string]func(config, oauth map[string]any){
		"another token endpoint": func(c, _ map[string]any) {
			c["authScheme"].(map[string]any)["flows"].(map[string]any)["authorizationCode"].(map[string]any)["tokenUrl"] = "http://127.0.0.1:9/token"
		},
		"a token":            func(_, o map[string]any) { o["accessToken"] = "attackers" },
		"a code of its own":  func(_, o map[string]any) { o["authResponseUri"] = "http://127.0.0.1:1/dev-ui/?code=c&state=s" },
		"another credential": func(c, _ map[string]any) { c["credentialKey"] = "other" },
	} {
		status, _ := w.api.sse(reply(change), false)
		require.Equal(t, http.StatusBadRequest, status, name)
		require.Equal(t, []string{"pending"}, w.query(`SELECT status FROM requests WHERE id = ?`, asked.ID), name)
	}

	page, err := demo.NewBrowser().Login(t.Context(), link+"&redirect_uri="+url.QueryEscape(w.URL()+"/dev-ui/"), "alice", "alice-password")
	require.NoError(t, err)
	require.Contains(t, page.Title, "Connected")
	status, events = w.api.sse(reply(func(_, o map[string]any) { o["redirectUri"] = w.URL() + "/dev-ui/" }), false)
	require.Equal(t, http.StatusOK, status)
	require.NotEmpty(t, events)
	require.Equal(t, "Four tickets.", events[len(events)-1].Content.Parts[0].Text)
	require.Empty(t, asks(events), "what was sent before is not sent again")
	require.Equal(t, 1, w.provider.Counts().TokenOK["authorization_code"])

	// ADK's documented client has its person paste the address that the browser shows, which is our own page here.
	require.Contains(t, page.URL.String(), w.URL()+"/oauth/callback/")
	status, again := w.api.sse(reply(func(_, o map[string]any) { o["authResponseUri"] = page.URL.String() }), false)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, events, again)
	require.Equal(t, 1, w.provider.Counts().Token["authorization_code"])
}

// P27: a client that goes away does not stop the run.
func TestClientGoesAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("slow")+text("slow is done")))
	gate := w.mcp.HoldSlow()
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", nil, &session))
	r := runHandle{w.api, "assistant", "user", session.ID}
	_, first := w.api.sse(message(session.ID, map[string]string{"text": "Go."}), true) // and hangs up
	require.Len(t, first, 1)
	w.login(w.waiting(r))
	<-gate.Arrived()
	gate.Open()
	w.eventually("the run does not go on by itself", func() bool {
		return len(responses(r.events(), "slow")) == 1 && r.status().Answer == "slow is done"
	})
}
