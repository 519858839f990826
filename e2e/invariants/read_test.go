package invariants_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"
	_ "modernc.org/sqlite"

	"tarry/agent"
	"tarry/e2e/invariants"
	"tarry/models"
	"tarry/models/scripted"
	"tarry/server/stream/streamtest"
	"tarry/wire"
)

// What is read is what stores and scripted models write.
func TestRead(t *testing.T) {
	t.Parallel()
	s, path := streamtest.Open(t)
	p := streamtest.New(t, s, agent.Owner{App: "tickets", User: "ann"}, "s1")
	p.Post("hello", wire.ModeJob)
	p.Take()
	p.Say("", "c1", "c2")
	request := p.AskOnly("c1", "r1")
	p.Grant(request.ID)
	p.Respond("c1", "r1")
	p.Respond("c2", "")
	p.Say("done")
	p.Finish("done", true)

	journal := filepath.Join(t.TempDir(), "journal.jsonl")
	model, err := scripted.New(scripted.Script{Agents: []scripted.Agent{{Agent: "helper", Steps: []scripted.Step{{Text: "hi"}, {Text: "done"}}}}}, scripted.Journal(journal))
	require.NoError(t, err)
	ask := func(contents ...*genai.Content) {
		for _, err := range model.GenerateContent(t.Context(), &models.Request{Agent: "helper", Invocation: p.Invocation, Contents: contents}, false) {
			require.NoError(t, err)
		}
	}
	said := genai.NewContentFromText("hello", genai.RoleUser)
	called := &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "search"}}}}
	ask(said, called, &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "search"}}}})

	db, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	read := func() invariants.Log {
		l, err := invariants.Read(t.Context(), db, journal)
		require.NoError(t, err)
		return l
	}
	l := read()
	require.Empty(t, invariants.Check(l))
	require.Len(t, l.Sessions, 1)
	require.Len(t, l.Events, 6)
	require.Len(t, l.Calls, 2)
	require.Len(t, l.Requests, 1)
	require.False(t, l.Requests[0].Ended.IsZero())
	require.False(t, l.Invocations[0].Ended.IsZero())
	require.Equal(t, []string{"c1", "c2"}, l.Events[1].Calls)
	require.Equal(t, []string{"c1"}, l.Asked[0].Contents[1].Calls)
	require.Equal(t, p.Invocation, l.Asked[0].Invocation)
	require.NotEmpty(t, l.Asked[0].Digest)
	for _, tree := range l.Trees {
		require.Equal(t, "helper", tree.Name)
	}

	ask(said, called)
	_, err = db.ExecContext(t.Context(), `UPDATE calls SET answer = 'other' WHERE id = 'c2'`)
	require.NoError(t, err)
	found := invariants.Check(read())
	require.Len(t, found, 2)
	require.Contains(t, found[0].String(), "I9: model request 2, of agent helper")
	require.Contains(t, found[1].String(), "I6: call c2 of helper")

	require.NoError(t, os.Remove(journal))
	require.Empty(t, read().Asked)
}
