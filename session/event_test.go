package session_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/session"
)

func event(parts ...*genai.Part) session.Event {
	return session.Event{ID: "e", InvocationID: "i", Author: "root", Timestamp: 1772366400.123456, Content: &genai.Content{Role: "model", Parts: parts}}
}

func marshal(t *testing.T, v any) string {
	t.Helper()
	body, err := json.Marshal(v)
	require.NoError(t, err)
	return string(body)
}

// ADK's clients cannot show a call without args and refuse null.
func TestEventJSON(t *testing.T) {
	t.Parallel()
	const actions = `"actions":{"stateDelta":{},"artifactDelta":{},"requestedAuthConfigs":{},"requestedToolConfirmations":{}}`
	for name, tt := range map[string]struct {
		event session.Event
		want  string
	}{
		"bare": {session.Event{}, `{"id":"","invocationId":"","author":"","timestamp":0,` + actions + `}`},
		"text": {event(text("a < b & c")), `{"id":"e","invocationId":"i","author":"root","timestamp":1772366400.123456,"content":{"role":"model","parts":[{"text":"a < b & c"}]},` + actions + `}`},
		"no args": {event(call("a", "one"), call("b", "two", "n", 1)), `{"id":"e","invocationId":"i","author":"root","timestamp":1772366400.123456,
			"content":{"role":"model","parts":[{"functionCall":{"id":"a","name":"one","args":{}}},{"functionCall":{"id":"b","name":"two","args":{"n":1}}}]},` + actions + `}`},
		"no response": {event(result("a", "one")), `{"id":"e","invocationId":"i","author":"root","timestamp":1772366400.123456,
			"content":{"role":"model","parts":[{"functionResponse":{"id":"a","name":"one","response":{}}}]},` + actions + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := marshal(t, tt.event)
			require.JSONEq(t, tt.want, body)
			require.NotContains(t, body, "null")
			require.JSONEq(t, tt.want, marshal(t, &tt.event))
			var back session.Event
			require.NoError(t, json.Unmarshal([]byte(body), &back))
			require.Equal(t, body, marshal(t, back), "decoding and encoding changes no byte")
		})
	}
}

func TestEventJSONKeepsNumbers(t *testing.T) {
	t.Parallel()
	e := event(call("a", "one"), call("b", "two", "id", int64(math.MaxInt64), "big", json.Number("123456789012345678901234567890")))
	body := marshal(t, e)
	require.Contains(t, body, "9223372036854775807")
	require.Contains(t, body, "123456789012345678901234567890")
	require.Contains(t, body, `"args":{}`)
}

func TestEventJSONStateDelta(t *testing.T) {
	t.Parallel()
	e := event(text("x"))
	e.Actions.StateDelta = map[string]any{"gone": nil, "kept": 1}
	require.Contains(t, marshal(t, e), `"stateDelta":{"gone":null,"kept":1}`, "null inside deletes a key, and is no missing map")
}

// P11: what a client was asked with is what it reads later, byte for byte.
func TestCredentialRequestRoundTrip(t *testing.T) {
	t.Parallel()
	const config = `{"authScheme":{"flows":{"authorizationCode":{"authorizationUrl":"https://id.example/auth?a=1&b=2","scopes":{"read":"","write":"a <b>"},"tokenUrl":"https://id.example/token"}},"type":"oauth2"},"credentialKey":"tarry_mcp_00","exchangedAuthCredential":{"authType":"oauth2","oauth2":{"authUri":"https://tarry.example/connect?request=adk-r&state=s","clientId":"c","state":"s"}},"rawAuthCredential":{"authType":"oauth2","oauth2":{"clientId":"c"}}}`
	var args map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"functionCallId":"adk-1","authConfig":`+config+`}`), &args))
	e := event(&genai.Part{FunctionCall: &genai.FunctionCall{ID: "adk-r", Name: "adk_request_credential", Args: args}})
	e.LongRunningToolIDs = []string{"adk-r"}
	first := marshal(t, e)
	for range 3 {
		var back session.Event
		require.NoError(t, json.Unmarshal([]byte(first), &back))
		require.Equal(t, first, marshal(t, back))
	}
	unescaped := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(first)
	require.Contains(t, unescaped, config)
	require.True(t, e.Asks())
	require.True(t, e.Final())
}

func TestEventKinds(t *testing.T) {
	t.Parallel()
	skip := event(result("a", "one"))
	skip.Actions.SkipSummarization = true
	partial := event(text("x"))
	partial.Partial = true
	for name, tt := range map[string]struct {
		event       session.Event
		final, asks bool
		text        string
	}{
		"text":         {event(thought("hm"), text("a"), text("b")), true, false, "ab"},
		"call":         {event(call("a", "one")), false, false, ""},
		"response":     {event(result("a", "one")), false, false, ""},
		"skip":         {skip, true, false, ""},
		"partial":      {partial, false, false, "x"},
		"empty":        {session.Event{}, true, false, ""},
		"confirmation": {event(call("a", "adk_request_confirmation")), false, true, ""},
		"reply":        {event(result("a", "adk_request_credential")), false, true, ""},
		"transfer":     {event(call("a", "transfer_to_agent")), false, false, ""},
	} {
		require.Equal(t, tt.final, tt.event.Final(), name)
		require.Equal(t, tt.asks, tt.event.Asks(), name)
		require.Equal(t, tt.text, tt.event.Text(), name)
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	c := session.Call{ID: "c", Invocation: "i", Event: "m", Last: "m", Agent: "root", Name: "app.send"}
	e := session.Interrupted(c, "id")
	require.Equal(t, []string{"m"}, e.Parents)
	require.Equal(t, session.KindResponse, e.Kind)
	require.Equal(t, "send", e.Responses()[0].Name)
	require.NotContains(t, marshal(t, e.Event), "took effect")
	c.Asking, c.Last, c.Started = "asked", "asked", true
	e = session.Interrupted(c, "id")
	require.Equal(t, []string{"asked"}, e.Parents)
	require.Contains(t, marshal(t, e.Event), "took effect")
}
