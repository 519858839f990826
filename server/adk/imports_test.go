package adk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
	"tarry/wire"
)

// elsewhere is a conversation as ADK's web UI exports it, and as Python's clients write it.
const elsewhere = `{"state":{"topic":"x"},"events":[
	{"id":"a","invocationId":"e-1","author":"user","timestamp":1700000000.5,"content":{"role":"user","parts":[{"text":"look"}]},"actions":{"stateDelta":{},"artifactDelta":{},"requestedAuthConfigs":{},"requestedToolConfirmations":{}}},
	{"id":"b","invocation_id":"e-1","author":"helper","long_running_tool_ids":[],"content":{"role":"model","parts":[{"thought":true,"text":"hm"},{"function_call":{"id":"adk-1","name":"search","args":{"user_name":"Ann"}}}]},"usageMetadata":{"totalTokenCount":5}},
	{"id":"c","invocationId":"e-1","author":"helper","content":{"role":"user","parts":[{"functionResponse":{"id":"adk-1","name":"search","response":{"found_it":1}}}]},"actions":{"skipSummarization":null,"endOfAgent":false}},
	{"id":"d","invocationId":"e-1","author":"helper","partial":true,"content":{"role":"model","parts":[{"text":"the"}]}},
	{"id":"e","invocationId":"e-1","author":"helper","content":{"role":"model","parts":[{"text":"there it is"}]}},
	{"id":"f","invocationId":"e-2","author":"user","content":{"parts":[{"inlineData":{"data":"-_-_","mimeType":"image/png"}}]}}
]}`

func TestImportedSession(t *testing.T) {
	t.Parallel()
	b := setup(t)
	status, body := b.do(http.MethodPost, sessions, elsewhere)
	require.Equal(t, http.StatusOK, status, body)
	got := decode(t, body)
	id := got["id"].(string)
	require.Equal(t, map[string]any{"topic": "x"}, got["state"])
	events := got["events"].([]any)
	require.Len(t, events, 5)
	authors, invocations := []any{}, map[any]bool{}
	for _, e := range events {
		e := e.(map[string]any)
		authors = append(authors, e["author"])
		invocations[e["invocationId"]] = true
		require.NotContains(t, []any{"a", "b", "c", "d", "e", "f"}, e["id"], "ids are of here")
		require.Contains(t, e, "timestamp")
		require.Contains(t, e["content"], "role")
	}
	require.Equal(t, []any{"user", "helper", "helper", "helper", "user"}, authors)
	require.Len(t, invocations, 2)
	require.NotContains(t, body, `"e-1"`)
	require.Contains(t, body, `"user_name":"Ann"`)
	require.Contains(t, body, `"timestamp":1700000000.5`)
	status, body = b.do(http.MethodPost, sessions, strings.Replace(elsewhere, `"state"`, `"sessionId":"`+id+`","state"`, 1))
	require.Equal(t, http.StatusConflict, status, body)

	// It goes on like any other.
	p := b.player(id)
	stream := b.sse(say(id, "and then?"))
	user := p.Take()
	views := session.NewViews(b.store, 1)
	contents, err := views.Contents(t.Context(), p.Row, []string{user.ID}, session.Reader{Agent: "helper"})
	require.NoError(t, err)
	require.Len(t, contents, 6)
	p.Say("that is all")
	p.Finish(wire.EndDone, false)
	require.Len(t, <-stream, 1)
	_, body = b.do(http.MethodGet, sessions+"/"+id, nil)
	require.Len(t, decode(t, body)["events"], 7)
}

func TestImportsThatAreRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	call := func(name, id string) string {
		return fmt.Sprintf(`{"author":"helper","content":{"parts":[{"functionCall":{"id":%q,"name":%q,"args":{}}}]}}`, id, name)
	}
	response := func(author, name, id string) string {
		return fmt.Sprintf(`{"author":%q,"content":{"parts":[{"functionResponse":{"id":%q,"name":%q,"response":{}}}]}}`, author, id, name)
	}
	for name, c := range map[string]struct{ events, says string }{
		"a login that was asked for":      {call("adk_request_credential", "r"), "events[0].content.parts[0].functionCall: the name"},
		"an approval":                     {call("search", "c") + "," + response("user", "adk_request_confirmation", "c"), "reserved"},
		"a transfer":                      {call("transfer_to_agent", "r"), "reserved"},
		"a call of a person":              {strings.Replace(call("search", "c"), "helper", "user", 1), "only agents call"},
		"a response of a person":          {call("search", "c") + "," + response("user", "search", "c"), "events[1].content.parts[0].functionResponse: author"},
		"a call without response":         {call("search", "c"), "events[0]: call"},
		"a response without call":         {response("helper", "search", "c"), "no call"},
		"two responses":                   {call("search", "c") + "," + response("helper", "search", "c") + "," + response("helper", "search", "c"), "events[2]"},
		"two calls of one id":             {call("search", "c") + "," + call("search", "c"), "another call's"},
		"a response of another name":      {call("search", "c") + "," + response("helper", "find", "c"), "must be those"},
		"a call without id":               {call("search", ""), "id and name"},
		"a long-running call":             {`{"author":"helper","longRunningToolIds":["c"]}`, "longRunningToolIds"},
		"state":                           {`{"author":"helper","actions":{"stateDelta":{"app:x":1}}}`, "events[0].actions.stateDelta"},
		"state, in the other spelling":    {`{"author":"helper","actions":{"state_delta":{"x":1}}}`, "stateDelta"},
		"a request for a login":           {`{"author":"helper","actions":{"requestedAuthConfigs":{"c":{}}}}`, "requestedAuthConfigs"},
		"no author":                       {`{"content":{"parts":[{"text":"hi"}]}}`, "events[0].author"},
		"an author that is none":          {`{"author":"a\u0000b","content":{"parts":[{"text":"hi"}]}}`, "events[0].author"},
		"no object":                       {`1`, "events[0] is not an object"},
		"content that is none":            {`{"author":"user","content":"hi"}`, "events[0].content"},
		"parts that are none":             {`{"author":"user","content":{"parts":{}}}`, "events[0].content.parts"},
		"a part that is none":             {`{"author":"user","content":{"parts":["hi"]}}`, "events[0].content.parts[0]"},
		"text that is none":               {`{"author":"user","content":{"parts":[{"text":1}]}}`, "events[0].content.parts[0]"},
		"args that are none":              {`{"author":"helper","content":{"parts":[{"functionCall":{"id":"c","name":"search","args":[]}}]}}`, "functionCall is not"},
		"a time that is none":             {`{"author":"user","timestamp":"now"}`, "events[0].timestamp"},
		"actions that are none":           {`{"author":"user","actions":[1]}`, "events[0].actions"},
		"more events than a session gets": {strings.TrimSuffix(strings.Repeat("{},", 10_001), ","), "at most 10000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := b.do(http.MethodPost, sessions, `{"sessionId":"s-`+strings.ReplaceAll(name, " ", "-")+`","events":[`+c.events+`]}`)
			require.Equal(t, http.StatusBadRequest, status, body)
			require.Contains(t, decode(t, body)["error"], c.says)
			require.Less(t, len(body), 500)
			status, _ = b.do(http.MethodGet, sessions+"/s-"+strings.ReplaceAll(name, " ", "-"), nil)
			require.Equal(t, http.StatusNotFound, status, "nothing is made")
		})
	}
	status, body := b.do(http.MethodPost, sessions, `{"events":{}}`)
	require.Equal(t, http.StatusBadRequest, status)
	require.Contains(t, body, "events is not a list")
}
