package tarry_test

import (
	"encoding/json"
	"log/slog"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry"
	"tarry/agent"
)

type forecast struct {
	City    string  `json:"city" jsonschema:"where"`
	Celsius float64 `json:"celsius,omitempty"`
}

func TestSchema(t *testing.T) {
	t.Parallel()
	raw, err := tarry.Schema[forecast]()
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":"string","description":"where"},"celsius":{"type":"number"}},"required":["city"],"additionalProperties":false}`, string(raw))
	_, err = tarry.Schema[chan int]()
	require.ErrorContains(t, err, "schema of chan int")
}

// What is wrong with a schema shows before anything runs.
func TestBadSchemas(t *testing.T) {
	t.Parallel()
	temporal, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	c := tarry.Config{Client: temporal, Log: slog.New(slog.DiscardHandler), PublicURL: &url.URL{Scheme: "http", Host: "localhost"}}
	bad := json.RawMessage(`{"$ref":"https://elsewhere.example/schema"}`)
	def := &agent.Definition{App: "a", Root: &agent.Agent{Name: "root", Kind: agent.KindLLM, Model: "m", OutputSchema: bad}}
	_, err = tarry.NewWorker(t.Context(), tarry.App{Agents: []*agent.Definition{def}}, c)
	require.ErrorContains(t, err, "agent root: output_schema: not a JSON Schema")
	_, err = tarry.NewWorker(t.Context(), tarry.App{Schemas: map[string]json.RawMessage{"Weather": bad}}, c)
	require.ErrorContains(t, err, "register schema Weather: not a JSON Schema")
}
