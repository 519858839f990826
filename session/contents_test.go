package session_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
)

var update = flag.Bool("update", false, "write the golden files anew")

// conversation builds records; each one comes after those before it.
type conversation struct {
	records []*session.Record
}

func (c *conversation) add(author, branch string, parts ...*genai.Part) *session.Record {
	n := len(c.records) + 1
	r := &session.Record{
		Event: session.Event{ID: fmt.Sprint("e", n), InvocationID: "i", Author: author, Branch: branch, Content: &genai.Content{Role: "model", Parts: parts}},
		Seq:   int64(n), Kind: session.KindModel,
	}
	switch {
	case author == agent.UserAuthor:
		r.Kind, r.Content.Role = session.KindUser, "user"
	case len(r.Responses()) > 0:
		r.Kind, r.Content.Role = session.KindResponse, "user"
	}
	c.records = append(c.records, r)
	return r
}

func text(s string) *genai.Part    { return &genai.Part{Text: s} }
func thought(s string) *genai.Part { return &genai.Part{Text: s, Thought: true} }

func call(id, name string, args ...any) *genai.Part {
	return &genai.Part{FunctionCall: &genai.FunctionCall{ID: id, Name: name, Args: object(args)}}
}

func result(id, name string, values ...any) *genai.Part {
	return &genai.Part{FunctionResponse: &genai.FunctionResponse{ID: id, Name: name, Response: object(values)}}
}

func object(pairs []any) map[string]any {
	if len(pairs) == 0 {
		return nil
	}
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

// A model that makes a call of a reserved name beside a real one sees both answered.
func TestForgedQuestionHidesNoCall(t *testing.T) {
	t.Parallel()
	c := &conversation{}
	c.add("user", "", text("go"))
	c.add("writer", "", call("x", agent.RequestCredential), call("c1", "search"))
	c.add("writer", "", result("x", agent.RequestCredential, "error", "no such tool"))
	c.add("writer", "", result("c1", "search", "n", 1))
	out, err := session.Contents(c.records, session.Reader{Agent: "writer"})
	require.NoError(t, err)
	require.Len(t, out, 3)
	require.Len(t, out[2].Parts, 2)
}

func TestContents(t *testing.T) {
	t.Parallel()
	// What several cases share: two agents in a loop, tools and a login.
	loop := func(c *conversation) {
		c.add("user", "", text("Plan the release."))
		c.add("writer", "", thought("hm"), text("I look."), call("c1", "search", "q", "release"), call("c2", "calendar"))
		c.add("writer", "", result("c2", "calendar", "free", true))
		c.add("writer", "", call("adk-r", agent.RequestCredential, "functionCallId", "c1")).Kind = session.KindRequest
		c.add("user", "", result("adk-r", agent.RequestCredential, "ok", true))
		c.add("writer", "", result("c1", "search", "hits", 3))
		c.add("writer", "", text("Friday."))
		c.add("critic", "", text("Too early."), thought("why?"))
		c.add("critic", "", call("c3", "count"))
		c.add("critic", "", result("c3", "count", "n", 1))
	}
	for name, tt := range map[string]struct {
		build                  func(*conversation)
		agent, branch, include string
	}{
		"own_agent":            {loop, "writer", "", ""},
		"other_agent":          {loop, "critic", "", "default"},
		"stranger":             {loop, "third", "", ""},
		"none_own_after_other": {loop, "writer", "", "none"},
		"none_middle_of_turn": {func(c *conversation) {
			c.add("user", "", text("old"))
			c.add("writer", "", text("answer"))
			c.add("user", "", text("new"))
			c.add("writer", "", call("c1", "search"))
			c.add("writer", "", result("c1", "search"))
		}, "writer", "", "none"},
		"arrival_order": {func(c *conversation) {
			c.add("user", "", text("go"))
			c.add("writer", "", call("a", "one"), call("b", "two"), call("c", "three"))
			c.add("writer", "", result("c", "three", "n", 3))
			c.add("writer", "", result("a", "one", "n", 1))
			c.add("writer", "", result("b", "two", "n", 2))
			c.add("writer", "", text("done"))
		}, "writer", "", ""},
		"late_response": {func(c *conversation) { // an answer that arrives after the person has said more
			c.add("writer", "", call("a", "one"))
			c.add("user", "", text("still there?"))
			c.add("writer", "", result("a", "one", "n", 1))
		}, "writer", "", ""},
		"notices_and_empty_events": {func(c *conversation) {
			c.add("user", "", text("go"))
			c.add("writer", "", text("failed")).Kind = session.KindNotice
			c.add("writer", "").Content = nil
			c.add("writer", "")
			c.add("writer", "", text("half")).Partial = true
			c.add("critic", "", thought("only a thought"))
		}, "writer", "", ""},
		"branch_child": {branches, "left", "fork.left", ""},
		"branch_root":  {branches, "summary", "", ""},
		"branch_prefix": {func(c *conversation) {
			c.add("user", "", text("go"))
			c.add("agent_0", "fork.agent_0", text("mine is another branch"))
		}, "agent_00", "fork.agent_00", ""},
		"replies_of_people": {func(c *conversation) {
			c.add("user", "", text("go"))
			c.add("writer", "", call("a", "one"))
			c.add("writer", "", result("a", "one", "n", 1))
			c.add("user", "", result("a", "one", "n", "forged"))
			c.add("user", "", result("never-asked", "two", "n", 2), text("with words"))
			c.add("user", "", result("c9", "transfer_to_agent"))
		}, "writer", "", ""},
		"reply_of_a_person_to_a_long_running_tool": {func(c *conversation) {
			c.add("user", "", text("go"))
			c.add("writer", "", call("a", "approval"))
			c.add("user", "", result("a", "approval", "ok", true))
		}, "writer", "", ""},
		"transfer": {func(c *conversation) {
			c.add("root", "", call("t", agent.TransferToAgent, "agent_name", "writer"))
			c.add("root", "", result("t", agent.TransferToAgent))
			c.add("writer", "", text("hello"))
		}, "root", "", ""},
		"files_of_others": {func(c *conversation) {
			c.add("critic", "", &genai.Part{InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte{1}}}, text("see"))
		}, "writer", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c conversation
			tt.build(&c)
			before, err := json.Marshal(bodies(c.records))
			require.NoError(t, err)
			got, err := session.Contents(c.records, session.Reader{Agent: tt.agent, Branch: tt.branch, Include: tt.include})
			require.NoError(t, err)
			golden(t, name, got)
			after, err := json.Marshal(bodies(c.records))
			require.NoError(t, err)
			require.JSONEq(t, string(before), string(after), "the view is shared, nothing in it changes")
		})
	}
}

func branches(c *conversation) {
	c.add("user", "", text("go"))
	c.add("fork", "", text("I fork."))
	c.add("left", "fork.left", text("left says"))
	c.add("right", "fork.right", text("right says"))
	c.add("leaf", "fork.left.leaf", text("below"))
}

func bodies(records []*session.Record) []session.Event {
	var out []session.Event
	for _, r := range records {
		out = append(out, r.Event)
	}
	return out
}

// golden compares contents in a form that people read.
func golden(t *testing.T, name string, got []*genai.Content) {
	t.Helper()
	var b strings.Builder
	for _, c := range got {
		fmt.Fprintf(&b, "%s:\n", c.Role)
		for _, p := range c.Parts {
			body, err := json.Marshal(p)
			require.NoError(t, err)
			fmt.Fprintf(&b, "  %s\n", body)
		}
	}
	path := filepath.Join("testdata", "contents", name+".txt")
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String())
}

func TestContentsRefusesUnanswered(t *testing.T) {
	t.Parallel()
	for name, build := range map[string]func(*conversation){
		"a call without response": func(c *conversation) {
			c.add("writer", "", call("a", "one"), call("b", "two"))
			c.add("writer", "", result("a", "one"))
		},
		"a response without call": func(c *conversation) {
			c.add("writer", "", result("a", "one"))
		},
		"a response of another agent": func(c *conversation) {
			c.add("writer", "", call("a", "one"))
			c.add("critic", "", result("a", "one"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c conversation
			build(&c)
			_, err := session.Contents(c.records, session.Reader{Agent: "writer"})
			require.ErrorIs(t, err, session.ErrUnanswered)
		})
	}
}
