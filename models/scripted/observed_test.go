package scripted_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/models"
	"tarry/models/scripted"
)

// Any model's calls can stand in a journal: their shape, and no word of them.
func TestObserved(t *testing.T) {
	t.Parallel()
	inner, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: scripted.AnyAgent, Steps: []scripted.Step{{Calls: []scripted.Call{{Name: "t"}}}, {Text: "hello"}}}}})
	require.NoError(t, err)
	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	req := &models.Request{Model: "acme/large", Agent: "a", Invocation: "i", Contents: []*genai.Content{
		genai.NewContentFromText("a secret", genai.RoleUser),
		{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: "c", Name: "t"}}}},
		{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: "c", Name: "t"}}}},
	}}
	for response, err := range scripted.Observed(inner, journal).GenerateContent(t.Context(), req, false) {
		require.NoError(t, err)
		require.NotNil(t, response)
	}
	body, err := os.ReadFile(journal)
	require.NoError(t, err)
	require.NotContains(t, string(body), "secret")
	var record scripted.Record
	require.NoError(t, json.Unmarshal([]byte(strings.TrimSpace(string(body))), &record))
	require.Equal(t, []string{"user", "model call:c", "user response:c"}, record.View)
	require.Equal(t, "i", record.Invocation)

	for _, err := range scripted.Observed(inner, t.TempDir()).GenerateContent(t.Context(), req, false) {
		require.ErrorContains(t, err, "journal")
	}
}
