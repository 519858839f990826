package e2e_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/store/storetest"
)

// frames are the events of a stream as they stand there.
func (s adkSession) frames(words string) (out []json.RawMessage) {
	s.w.t.Helper()
	resp := s.c.openSSE(s.w.t.Context(), s.body(nil, map[string]string{"text": words}))
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.w.t, err)
	for line := range strings.Lines(string(text)) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			out = append(out, json.RawMessage(data))
		}
	}
	return out
}

// stored are the events of the session as GET shows them.
func (s adkSession) stored() []json.RawMessage {
	s.w.t.Helper()
	var out struct{ Events []json.RawMessage }
	require.Equal(s.w.t, http.StatusOK, s.c.call("GET", s.path(""), nil, &out))
	return out.Events
}

func keysOf(v any) []string {
	m, _ := v.(map[string]any)
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return out
}

// The request for a login as ADK has it, field by field: from a tool, from a toolset before any tool is known, and once where two
// parallel calls need the same. It comes back from the session byte by byte, also after a restart (P11, P16).
func TestADKRequestOnTheWire(t *testing.T) { requestOnTheWire(t, "") }

func TestADKRequestOnTheWireOnPostgres(t *testing.T) { requestOnTheWire(t, storetest.Schema(t)) }

func requestOnTheWire(t *testing.T, database string) {
	t.Helper()
	t.Parallel()
	o := single(call("list_tickets", "whoami") + text("Done."))
	o.database = database
	w := newWorld(t, o)
	kept := map[adkSession][]json.RawMessage{}
	for _, c := range []struct {
		user   string
		open   bool
		events int
		about  func(id string) bool
	}{
		{"tool", true, 2, func(id string) bool { return strings.HasPrefix(id, "adk-") }},
		{"toolset", false, 1, func(id string) bool { return strings.HasPrefix(id, "_adk_toolset_auth_McpToolset") }},
	} {
		w.mcp.SetSwitches(func(s *demo.MCPSwitches) { s.OpenListing = c.open })
		if !c.open {
			require.NoError(t, w.Restart(t.Context(), stack.Worker)) // it remembers what there is
		}
		s := w.adkSession(c.user)
		frames := s.frames("Go.")
		require.Len(t, frames, c.events, c.user)
		last := frames[len(frames)-1]
		var e map[string]any
		require.NoError(t, json.Unmarshal(last, &e))
		require.NotContains(t, string(last), "null")
		require.NotContains(t, string(last), "ecret")
		require.NotEmpty(t, e["id"])
		require.NotEmpty(t, e["invocationId"])
		require.Equal(t, "assistant", e["author"])
		require.Positive(t, e["timestamp"])
		require.Subset(t, keysOf(e["actions"]), []string{"artifactDelta", "requestedAuthConfigs", "requestedToolConfirmations", "stateDelta"})
		content := e["content"].(map[string]any)
		require.Equal(t, "model", content["role"])
		require.Len(t, content["parts"], 1, "one call for both tools")
		request := content["parts"].([]any)[0].(map[string]any)["functionCall"].(map[string]any)
		require.Equal(t, []string{"args", "id", "name"}, keysOf(request))
		require.Equal(t, "adk_request_credential", request["name"])
		require.Equal(t, []any{request["id"]}, e["longRunningToolIds"])
		args := request["args"].(map[string]any)
		require.Equal(t, []string{"authConfig", "functionCallId"}, keysOf(args))
		require.True(t, c.about(args["functionCallId"].(string)), args["functionCallId"])
		require.NotEqual(t, request["id"], args["functionCallId"])
		config := args["authConfig"].(map[string]any)
		require.Equal(t, []string{"authScheme", "credentialKey", "exchangedAuthCredential", "rawAuthCredential"}, keysOf(config))
		require.NotEmpty(t, config["credentialKey"])
		scheme := config["authScheme"].(map[string]any)
		require.Equal(t, []string{"flows", "type"}, keysOf(scheme))
		require.Equal(t, "oauth2", scheme["type"])
		flow := scheme["flows"].(map[string]any)["authorizationCode"].(map[string]any)
		require.Equal(t, []string{"authorizationUrl", "scopes", "tokenUrl"}, keysOf(flow))
		require.Equal(t, w.provider.AuthorizeURL(), flow["authorizationUrl"])
		require.Equal(t, w.provider.TokenURL(), flow["tokenUrl"])
		require.IsType(t, map[string]any{}, flow["scopes"])
		raw := config["rawAuthCredential"].(map[string]any)
		require.Equal(t, []string{"authType", "oauth2"}, keysOf(raw))
		exchanged := config["exchangedAuthCredential"].(map[string]any)
		require.Equal(t, []string{"authType", "oauth2"}, keysOf(exchanged))
		require.Equal(t, "oauth2", exchanged["authType"])
		oauth := exchanged["oauth2"].(map[string]any)
		require.Subset(t, []string{"authUri", "clientId", "state"}, keysOf(oauth))
		link, err := url.Parse(oauth["authUri"].(string))
		require.NoError(t, err)
		require.Equal(t, w.URL()+"/connect", link.Scheme+"://"+link.Host+link.Path)
		require.Equal(t, oauth["state"], link.Query().Get("state"))
		require.NotEmpty(t, link.Query().Get("request"))
		kept[s] = s.stored()
		require.Equal(t, string(last), string(kept[s][len(kept[s])-1]), "as the stream had it")
	}
	require.NoError(t, w.Kill(stack.All()...))
	require.NoError(t, w.Start(t.Context(), stack.All()...))
	for s, events := range kept {
		require.Equal(t, events, s.stored(), s.user)
	}
}
