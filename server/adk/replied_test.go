package adk_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
)

// sessionEvents are those of session s1, as clients read them.
func (b *bundle) sessionEvents() (out []map[string]any) {
	b.t.Helper()
	status, body := b.do(http.MethodGet, "/apps/tickets/users/ann/sessions/s1", nil)
	require.Equal(b.t, http.StatusOK, status, body)
	var s struct{ Events []map[string]any }
	require.NoError(b.t, json.Unmarshal([]byte(body), &s))
	return s.Events
}

// repliesOf are the function responses of the user among events, by their id, and their places.
func repliesOf(t *testing.T, events []map[string]any) (map[string]map[string]any, map[string]int) {
	t.Helper()
	out, places := map[string]map[string]any{}, map[string]int{}
	ids := map[any]bool{}
	for i, e := range events {
		require.NotEmpty(t, e["id"])
		require.False(t, ids[e["id"]], "an id twice")
		ids[e["id"]] = true
		content, _ := e["content"].(map[string]any)
		for _, part := range content["parts"].([]any) {
			response, ok := part.(map[string]any)["functionResponse"].(map[string]any)
			if ok && e["author"] == agent.UserAuthor {
				require.Equal(t, "user", content["role"])
				out[response["id"].(string)], places[response["id"].(string)] = response, i
			}
		}
	}
	return out, places
}

// A client that opens a session sees which questions were answered; of the answers it sees nothing else.
func TestQuestionsThatEndedHaveReplies(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.pending()
	replies, _ := repliesOf(t, b.sessionEvents())
	require.Empty(t, replies, "the question is open")

	p.Grant("r1")
	before := b.sessionEvents()
	replies, places := repliesOf(t, before)
	require.Equal(t, map[string]any{"id": "r1", "name": agent.RequestCredential, "response": map[string]any{"status": "granted"}}, replies["r1"])
	require.Equal(t, len(before)-1, places["r1"], "after the question, and the run has not gone on")
	p.Respond("call-1", "r1")
	p.Say("Found it.")
	after := b.sessionEvents()
	replies, places = repliesOf(t, after)
	require.Len(t, replies, 1)
	require.Equal(t, before[places["r1"]], after[places["r1"]], "it does not change")
	require.Less(t, places["r1"], len(after)-1)

	p.Say("", "call-2")
	p.AskApproval("call-2", "r2")
	_, err := b.handler.Confirmations.Confirm(t.Context(), func(o agent.Owner) bool { return o == ann }, "r2", false, auth.Consent{Payload: `"canary"`})
	require.NoError(t, err)
	events := b.sessionEvents()
	replies, _ = repliesOf(t, events)
	require.Equal(t, map[string]any{"status": "denied", "confirmed": false}, replies["r2"]["response"])
	require.NotContains(t, encode(t, events), "canary")
}
