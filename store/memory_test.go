package store_test

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/session"
)

// talk is a session in which these things were said, in turn by its user and the agent.
func (k *kit) talk(o agent.Owner, id string, texts ...string) session.Session {
	k.Helper()
	row := k.session(o, id)
	var parents []string
	for i, text := range texts {
		e := said(fmt.Sprintf("%s-%s-%s-%d", o.App, o.User, id, i), session.KindUser, agent.UserAuthor, text, parents...)
		if i%2 == 1 {
			e.Kind, e.Author = session.KindModel, theAgent
		}
		k.append(row, theRun, e)
		parents = []string{e.ID}
	}
	return row
}

func (k *kit) recall(o agent.Owner, query string) []string {
	k.Helper()
	found, err := k.s.Recall(k.ctx, o, query)
	require.NoError(k, err)
	require.NotNil(k, found)
	out := []string{}
	for _, m := range found {
		out = append(out, m.Author+": "+m.Text)
	}
	return out
}

func (k *kit) remember(row session.Session) {
	k.Helper()
	require.NoError(k, k.s.Remember(k.ctx, row.Owner, row.ID))
}

func memoryCases() []testCase {
	return []testCase{
		{"memory/by words", func(k *kit) {
			k.remember(k.talk(ann, "s", "My dog is called Rex.", "Noted: Rex, the DOG.", "私はPythonを使う", "", "snake_case stays whole", "Ärger über Öl"))
			for query, want := range map[string][]string{
				"dog":                {"user: My dog is called Rex.", "root: Noted: Rex, the DOG."},
				"REX?":               {"user: My dog is called Rex.", "root: Noted: Rex, the DOG."},
				"called the dog":     {"user: My dog is called Rex.", "root: Noted: Rex, the DOG."},
				"Noted the dog":      {"root: Noted: Rex, the DOG.", "user: My dog is called Rex."},
				"do":                 {},
				"":                   {},
				"?!":                 {},
				"python":             {"user: 私はPythonを使う"},
				"thon":               {},
				"使う":                 {"user: 私はPythonを使う"},
				"snake":              {},
				"snake_case":         {"user: snake_case stays whole"},
				"öl":                 {"root: Ärger über Öl"},
				"% _ ' \" \\ ) OR 1": {},
			} {
				require.Equal(k, want, k.recall(ann, query), query)
			}
		}},
		{"memory/whose it is", func(k *kit) {
			k.remember(k.talk(ann, "s", "the code is 1234"))
			k.remember(k.talk(bob, "s", "the code is 5678"))
			k.talk(ann, "t", "the code is not remembered")
			require.Equal(k, []string{"user: the code is 1234"}, k.recall(ann, "code"))
			require.Equal(k, []string{"user: the code is 5678"}, k.recall(bob, "code"))
			require.Empty(k, k.recall(sameName, "code"))
			require.ErrorIs(k, k.s.Remember(k.ctx, bob, "t"), session.ErrNotFound)
		}},
		{"memory/again replaces", func(k *kit) {
			row := k.talk(ann, "s", "one fish", "two fish")
			k.remember(row)
			k.remember(row)
			require.Len(k, k.recall(ann, "fish"), 2)
			k.append(row, theRun, said("more", session.KindUser, agent.UserAuthor, "red fish", "planner-ann-s-1"))
			require.Len(k, k.recall(ann, "fish"), 2, "what was said since")
			k.remember(row)
			require.Len(k, k.recall(ann, "fish"), 3)
		}},
		{"memory/goes with the session", func(k *kit) {
			row := k.talk(ann, "s", "one fish")
			k.remember(row)
			k.remember(k.talk(ann, "t", "two fish"))
			require.NoError(k, k.s.Delete(k.ctx, ann, "s"))
			require.Equal(k, []string{"user: two fish"}, k.recall(ann, "fish"))
		}},
		{"memory/what is no part of it", func(k *kit) {
			row := k.talk(ann, "s", "fish to begin with")
			parent := "planner-ann-s-0"
			behind := said("behind", session.KindModel, "helper", "fish behind a tool", parent)
			behind.IsolationScope = "call-1"
			thought := said("thought", session.KindModel, theAgent, "fish in thought", "behind")
			thought.Content.Parts[0].Thought = true
			k.append(row, theRun, behind, thought, said("note", session.KindNotice, theAgent, "fish in a notice", "thought"))
			// What a run that was replaced said after the point of its reset is left behind.
			k.append(row, "run-2", said("anew", session.KindModel, theAgent, "fish after a reset", parent))
			k.remember(row)
			require.Equal(k, []string{"user: fish to begin with", "root: fish after a reset"}, k.recall(ann, "fish"))
		}},
		{"memory/bounds", func(k *kit) {
			var many []string
			for i := range 30 {
				many = append(many, fmt.Sprintf("fish number %d %s", i, strings.Repeat("x", 20<<10)))
			}
			k.remember(k.talk(ann, "s", many...))
			found, err := k.s.Recall(k.ctx, ann, "fish "+strings.Repeat("y z q ", 10_000))
			require.NoError(k, err)
			require.Len(k, found, session.MaxMemories)
			require.Less(k, len(found[0].Text), 17<<10)
			require.True(k, strings.HasPrefix(found[0].Text, "fish number 0 "), "among equals the older")
		}},
		{"memory/what was added first is forgotten first", func(k *kit) {
			text := strings.Repeat("fish bone ", 1<<10) // 10 KiB
			var half []string
			for range session.MaxMemory / len(text) * 6 / 10 {
				half = append(half, text)
			}
			for _, id := range []string{"a", "b"} {
				k.remember(k.talk(ann, id, append([]string{"word of " + id}, half...)...))
			}
			require.Empty(k, k.recall(ann, "a"))
			require.Len(k, k.recall(ann, "b"), 1)
			n := k.rows([]string{"memories"})["memories"]
			require.Less(k, n, session.MaxMemory/len(text)+2)
			require.Greater(k, n, session.MaxMemory/len(text)-3)
		}},
	}
}
