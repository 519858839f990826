package scripted_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/models/scripted"
)

func TestJSONIsReadAsWell(t *testing.T) {
	t.Parallel()
	script, err := scripted.Parse("s.json", []byte("{\n\t\"agents\": [\n\t\t{\"agent\": \"a\", \"steps\": [\n"+
		"\t\t\t{\"id\": \"x\", \"delay\": \"200ms\", \"calls\": [{\"name\": \"f\", \"args\": {\"n\": 1, \"on\": true}}]}\n\t\t]}\n\t]\n}\n"))
	require.NoError(t, err)
	require.Equal(t, scripted.Script{Name: "s.json", Agents: []scripted.Agent{{Agent: "a", Steps: []scripted.Step{{
		ID: "x", Delay: 200 * time.Millisecond,
		Calls: []scripted.Call{{Name: "f", Args: map[string]any{"n": 1.0, "on": true}}},
	}}}}}, script)
}

func TestMistakesNameFileLineFieldAndMend(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, source, want string }{
		{"empty", "", "s.yaml: the file is empty; start with agents:"},
		{"not YAML", "agents: [", "s.yaml: is not YAML or JSON"},
		{"no agents", "agents: []", "s.yaml:1: agents: there is no agent; add a list"},
		{
			"unknown field", "agents:\n  - agent: a\n    step: []\n",
			"s.yaml:3: agents[0].step: is not a field; fields here: agent, steps",
		},
		{
			"unknown field in a step", "agents:\n  - agent: a\n    steps:\n      - txt: hi\n",
			"s.yaml:4: agents[0].steps[0].txt: is not a field; fields here: calls, delay, error, id, pace, text, thought, usage, when",
		},
		{"no list", "agents:\n  agent: a\n", "s.yaml:1: agents: is not a list; start each entry with a dash"},
		{"no object", "agents:\n  - a\n", "s.yaml:2: agents[0]: is not an object; fields here: agent, steps"},
		{"no name", "agents:\n  - steps:\n      - text: hi\n", "s.yaml:2: agents[0].agent: is missing; write the agent's name"},
		{
			"twice", "agents:\n  - agent: a\n    steps: [{text: x}]\n  - agent: a\n    steps: [{text: x}]\n",
			`s.yaml:4: agents[1].agent: "a" has an entry already; put all`,
		},
		{"no steps", "agents:\n  - agent: a\n", "s.yaml:2: agents[0].steps: there is no step; add a step"},
		{
			"no answer", "agents:\n  - agent: a\n    steps:\n      - id: x\n",
			"s.yaml:4: agents[0].steps[0]: answers nothing; add text, calls or error",
		},
		{
			"both", "agents:\n  - agent: a\n    steps:\n      - text: x\n        error: {status: 500}\n",
			"s.yaml:4: agents[0].steps[0]: has an error and an answer; keep one",
		},
		{
			"call without name", "agents:\n  - agent: a\n    steps:\n      - calls:\n          - args: {}\n",
			"s.yaml:5: agents[0].steps[0].calls[0].name: is missing; write the name of the function",
		},
		{
			"args", "agents:\n  - agent: a\n    steps:\n      - calls:\n          - name: f\n            args: [1]\n",
			"s.yaml:6: agents[0].steps[0].calls[0].args: is no object of JSON values",
		},
		{
			"turn", "agents:\n  - agent: a\n    steps:\n      - when: {turn: first}\n        text: x\n",
			"s.yaml:4: agents[0].steps[0].when.turn: is not a whole number; write digits only",
		},
		{
			"delay", "agents:\n  - agent: a\n    steps:\n      - text: x\n        delay: 3\n",
			`s.yaml:5: agents[0].steps[0].delay: is not a duration; write a number with its unit`,
		},
		{
			"status", "agents:\n  - agent: a\n    steps:\n      - error:\n          status: 200\n",
			"s.yaml:5: agents[0].steps[0].error.status: 200 is no error; write 400 to 599",
		},
		{
			"placeholder", "agents:\n  - agent: a\n    steps:\n      - text: \"{{last.id}}\"\n",
			"s.yaml:4: agents[0].steps[0].text: {{last.id}} is unknown; write {{last_response.path}}",
		},
		{
			"null", "agents:\n  - agent: a\n    steps:\n      - text:\n",
			"s.yaml:4: agents[0].steps[0].text: is not a text",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := scripted.Parse("s.yaml", []byte(tt.source))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestAllMistakesAreReported(t *testing.T) {
	t.Parallel()
	_, err := scripted.New(scripted.Script{Agents: []scripted.Agent{
		{Agent: "a", Steps: []scripted.Step{{}, {Delay: -1, Text: "x"}}},
	}})
	require.ErrorContains(t, err, "script: agents[0].steps[0]: answers nothing")
	require.ErrorContains(t, err, "script: agents[0].steps[1].delay: is negative")
	var mistake *scripted.ScriptError
	require.ErrorAs(t, err, &mistake)
}

func TestFactoryStaysInItsFolder(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	dir := filepath.Join(outside, "scripts")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	source := []byte("agents: [{agent: a, steps: [{text: x}]}]")
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret.yaml"), source, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sub", "one.yml"), source, 0o600))
	factory := scripted.Factory(scripted.Config{Dir: dir})
	for _, name := range []string{"sub/one", "sub/one.yml"} {
		_, err := factory(t.Context(), name)
		require.NoError(t, err)
	}
	for _, name := range []string{"../secret", "../secret.yaml", filepath.Join(outside, "secret.yaml")} {
		_, err := factory(t.Context(), name)
		require.Error(t, err)
	}
	_, err := factory(t.Context(), "two")
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, ".yaml, .yml or .json")
	_, err = factory(t.Context(), "sub")
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = scripted.Factory(scripted.Config{Dir: filepath.Join(dir, "none")})(t.Context(), "one")
	require.ErrorContains(t, err, "open script folder")
}

func TestLoad(t *testing.T) {
	t.Parallel()
	script, err := scripted.Load(filepath.Join("testdata", "review.yaml"))
	require.NoError(t, err)
	require.Len(t, script.Agents, 2)
	require.Equal(t, int32(120), script.Agents[0].Steps[3].Usage.Prompt)
	_, err = scripted.Load("none.yaml")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
