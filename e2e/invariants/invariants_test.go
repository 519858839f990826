package invariants_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/e2e/invariants"
)

const (
	workflow   = "w"
	invocation = "i"
)

// at is a moment of the story, in seconds.
func at(s int) time.Time { return time.Unix(int64(1000+s), 0).UTC() }

func event(id, kind, author string, created int, parents ...string) invariants.Event {
	return invariants.Event{Workflow: workflow, Invocation: invocation, ID: id, Kind: kind, Author: author, Parents: parents, Created: at(created)}
}

func (s *story) asked(seconds int, agent, digest string, contents ...invariants.Content) {
	s.Asked = append(s.Asked, invariants.ModelRequest{
		Time: at(seconds), Agent: agent, Invocation: invocation, Digest: digest, Contents: append([]invariants.Content{{Role: "user"}}, contents...),
	})
}

type story struct{ invariants.Log }

// good is a session of a sequence of a and b, beside which c runs: a makes two calls, one of which waits from 4 to 8.
func good() *story {
	s := &story{}
	s.Trees = map[string]*invariants.Agent{"hash": {Name: "root", Kind: "ParallelAgent", Children: []*invariants.Agent{
		{Name: "line", Kind: "SequentialAgent", Children: []*invariants.Agent{
			{Name: "a", Kind: "LlmAgent", Tools: []*invariants.Agent{{Name: "t1", Kind: "LlmAgent"}, {Name: "t2", Kind: "LlmAgent"}}},
			{Name: "b", Kind: "LlmAgent"},
		}},
		{Name: "c", Kind: "LlmAgent"},
	}}}
	s.Sessions = []invariants.Session{{Workflow: workflow, Definition: "hash", Tips: []string{"b1", "c1"}}}
	s.Invocations = []invariants.Invocation{{Workflow: workflow, ID: invocation, Ended: at(20)}}
	a1 := event("a1", "model", "a", 2, "u")
	a1.Calls = []string{"x", "y"}
	rx, ry := event("rx", "response", "a", 8, "q"), event("ry", "response", "a", 3, "a1")
	rx.Responses, ry.Responses = []string{"x"}, []string{"y"}
	s.Events = []invariants.Event{
		event("u", "user", "user", 0), a1, ry, event("q", "request", "a", 4, "a1"), event("c1", "model", "c", 6, "u"), rx,
		event("a2", "model", "a", 10, "rx", "ry"), event("b1", "model", "b", 12, "a2"),
	}
	s.Calls = []invariants.Call{
		{Workflow: workflow, Invocation: invocation, ID: "x", Agent: "a", Answer: "rx", Asking: "q"},
		{Workflow: workflow, Invocation: invocation, ID: "y", Agent: "a", Answer: "ry"},
	}
	s.Requests = []invariants.Request{{Workflow: workflow, Invocation: invocation, ID: "q", Agent: "a", Call: "x", Event: "q", Ended: at(7)}}
	s.asked(1, "a", "d1")
	s.asked(1, "a", "d1") // the first process died
	s.asked(5, "c", "d1") // runs beside the wait
	s.asked(9, "a", "d2", invariants.Content{Role: "model", Calls: []string{"x", "y"}}, invariants.Content{Role: "user", Responses: []string{"x", "y"}})
	s.asked(11, "b", "d3")
	return s
}

func TestGoodRun(t *testing.T) {
	t.Parallel()
	require.Empty(t, invariants.Check(good().Log))
}

func (s *story) event(id string) *invariants.Event {
	return &s.Events[slices.IndexFunc(s.Events, func(e invariants.Event) bool { return e.ID == id })]
}

func TestViolations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		harm func(s *story)
		rule string
		says string
	}{
		"a call without a response": {func(s *story) { s.Asked[3].Contents[2].Responses = []string{"x"} }, "I9", "calls [x y] are followed by responses [x]"},
		"out of order":              {func(s *story) { slices.Reverse(s.Asked[3].Contents[2].Responses) }, "I9", "responses [y x]"},
		"a response too many":       {func(s *story) { s.Asked[3].Contents[2].Responses = []string{"x", "y", "y"} }, "I9", "responses [x y y]"},
		"an orphan":                 {func(s *story) { s.asked(13, "b", "d4", invariants.Content{Role: "user", Responses: []string{"x"}}) }, "I9", "calls [] are followed"},
		"not in the next message": {func(s *story) {
			s.Asked[3].Contents = slices.Insert(s.Asked[3].Contents, 2, invariants.Content{Role: "user"})
		}, "I9", "followed by responses []"},
		"at the end": {func(s *story) { s.Asked[3].Contents = s.Asked[3].Contents[:2] }, "I9", "are the last"},
		"an ended invocation with an open call": {func(s *story) {
			s.event("a2").Parents = []string{"ry"}
			s.Calls[0].Answer = ""
		}, "I9", "call x of a has no response"},
		"two results of one call": {func(s *story) {
			again := event("rx2", "response", "a", 9, "q")
			again.Responses = []string{"x"}
			s.Events = append(s.Events, again)
			s.Sessions[0].Tips = append(s.Sessions[0].Tips, "rx2")
		}, "I6", "rx rx2"},
		"another result than the row's": {func(s *story) { s.Calls[1].Answer = "other" }, "I6", `its row says "other"`},
		"one turn answered twice": {func(s *story) {
			s.Events = append(s.Events, event("a3", "model", "a", 11, "ry", "rx"))
			s.Sessions[0].Tips = append(s.Sessions[0].Tips, "a3")
		}, "I6", "a2 and a3 are answers of agent a after the same events"},
		"asked again after the answer":              {func(s *story) { s.asked(11, "a", "d2") }, "I6", "agent a was asked once more"},
		"asked again before the next turn":          {func(s *story) { s.asked(8, "a", "d1") }, "I6", "agent a was asked once more"},
		"the agent goes on while it waits":          {func(s *story) { s.asked(5, "a", "d9") }, "I8", "the model of agent a was asked while call x of agent a waited"},
		"the next agent is asked":                   {func(s *story) { s.asked(5, "b", "d9") }, "I8", "the model of agent b was asked while call x"},
		"the next agent speaks":                     {func(s *story) { s.event("b1").Created = at(5) }, "I8", "agent b said something"},
		"the agent goes on while its toolset waits": {func(s *story) { s.Requests[0].Call = ""; s.Calls[0].Asking = ""; s.asked(5, "a", "d9") }, "I8", "request q of agent a"},
		"the caller goes on while its tool waits":   {func(s *story) { s.Calls[0].Agent = "t1"; s.asked(5, "a", "d9") }, "I8", "agent a was asked while call x of agent t1 waited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good()
			c.harm(s)
			found := invariants.Check(s.Log)
			require.NotEmpty(t, found)
			require.Equal(t, c.rule, found[0].Rule)
			require.Contains(t, found[0].String(), c.says)
		})
	}
}

// What looks alike and is allowed.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(s *story){
		"a branch that a reset left behind": func(s *story) {
			s.Events = append(s.Events, event("old", "model", "a", 3, "u"))
			s.asked(2, "a", "d1")
		},
		"the same conversation again, with an answer of its own": func(s *story) {
			s.Events = append(s.Events, event("b2", "model", "b", 14, "b1"))
			s.Sessions[0].Tips[0] = "b2"
			s.asked(13, "b", "d3")
		},
		"behind another call of the answer": func(s *story) { s.Calls[0].Agent = "t1"; s.asked(5, "t2", "d9") },
		"a wait that was left behind": func(s *story) {
			s.Calls[0].Asking = "q"
			s.event("rx").Parents = []string{"a1"}
			s.asked(5, "a", "d9")
		},
		"nothing is known of the invocation": func(s *story) { s.Asked[4].Invocation = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := good()
			change(s)
			require.Empty(t, invariants.Check(s.Log))
		})
	}
}
