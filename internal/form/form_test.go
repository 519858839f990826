package form_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/form"
)

const schema = `{"type":"object","required":["name","size"],"properties":{
	"name":{"type":"string","title":"Your name","default":"Ann","minLength":2},
	"mail":{"type":"string","format":"email"},
	"site":{"type":"string","format":"uri"},
	"size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"],"default":"m"},
	"shade":{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g"}]},
	"tags":{"type":"array","items":{"anyOf":[{"const":"a","title":"A"},{"const":"b","title":"B"}]},"default":["b"]},
	"count":{"type":"integer","minimum":1,"default":3},
	"ok":{"type":"boolean","default":true}}}`

func TestFields(t *testing.T) {
	t.Parallel()
	fields, err := form.Fields(json.RawMessage(schema))
	require.NoError(t, err)
	byName := map[string]form.Field{}
	var order []string
	for _, f := range fields {
		byName[f.Name] = f
		order = append(order, f.Name)
	}
	require.Equal(t, []string{"name", "size", "count", "mail", "ok", "shade", "site", "tags"}, order, "what is needed comes first")
	require.Equal(t, "Ann", byName["name"].Value)
	require.Equal(t, "Your name", byName["name"].Title)
	require.Equal(t, "select", byName["size"].Kind)
	require.True(t, byName["size"].Required)
	require.Equal(t, []form.Option{{Value: "s", Label: "Small"}, {Value: "m", Label: "Medium", Selected: true}}, byName["size"].Options)
	require.Equal(t, []form.Option{{Value: "r", Label: "Red"}, {Value: "g", Label: "g"}}, byName["shade"].Options)
	require.Equal(t, []form.Option{{Value: "a", Label: "A"}, {Value: "b", Label: "B", Selected: true}}, byName["tags"].Options)
	require.Equal(t, "3", byName["count"].Value)
	require.True(t, byName["ok"].Checked)
	require.Equal(t, "email", byName["mail"].Kind)
	require.Equal(t, "url", byName["site"].Kind)
}

func TestSchemasThatAreNoForm(t *testing.T) {
	t.Parallel()
	for name, schema := range map[string]string{
		"not an object": `{"type":"string"}`, "nested": `{"type":"object","properties":{"a":{"type":"object"}}}`,
		"list of anything": `{"type":"object","properties":{"a":{"type":"array"}}}`, "no type": `{"type":"object","properties":{"a":{}}}`,
	} {
		_, err := form.Fields(json.RawMessage(schema))
		require.ErrorIs(t, err, form.ErrSchema, name)
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	good := "name=Bo&size=s&count=2&mail=b%40c.example&site=https%3A%2F%2Fc.example&shade=r&tags=a&tags=b&ok=true"
	for name, tc := range map[string]struct{ change, problem string }{
		"good":            {"", ""},
		"missing":         {"name=", "Your name: is needed"},
		"too short":       {"name=B", "Your name: does not fit what the server allows"},
		"no choice":       {"size=xl", "size: is not one of the choices"},
		"no choice, many": {"tags=c", "tags: is not one of the choices"},
		"no number":       {"count=two", "count: is not a number"},
		"half":            {"count=1.5", "count: does not fit what the server allows"},
		"too small":       {"count=0", "count: does not fit what the server allows"},
		"infinite":        {"count=Inf", "count: is not a number"},
		"no address":      {"site=c", "site: is not an address"},
		"too long":        {"name=" + strings.Repeat("a", 20<<10), "Your name: is too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := url.ParseQuery(good)
			require.NoError(t, err)
			change, err := url.ParseQuery(tc.change)
			require.NoError(t, err)
			for key := range change {
				values[key] = change[key]
			}
			got, err := form.Read(json.RawMessage(schema), func(name string) []string { return values[name] })
			if tc.problem != "" {
				var wrong *form.FieldError
				require.ErrorAs(t, err, &wrong)
				require.Equal(t, tc.problem, err.Error())
				return
			}
			require.NoError(t, err)
			require.Equal(t, map[string]any{
				"name": "Bo", "size": "s", "count": 2.0, "mail": "b@c.example", "site": "https://c.example", "shade": "r", "tags": []any{"a", "b"}, "ok": true,
			}, got)
		})
	}
}

// What is left empty is not sent, except for a box that was not ticked.
func TestReadLeavesOut(t *testing.T) {
	t.Parallel()
	values := url.Values{"name": {"Bo"}, "size": {"s"}}
	got, err := form.Read(json.RawMessage(schema), func(name string) []string { return values[name] })
	require.NoError(t, err)
	require.Equal(t, map[string]any{"name": "Bo", "size": "s", "ok": false}, got)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	got, complete := form.Defaults(json.RawMessage(schema))
	require.True(t, complete)
	require.Equal(t, map[string]any{"name": "Ann", "size": "m", "tags": []string{"b"}, "count": 3.0, "ok": true}, got)
	for name, schema := range map[string]string{
		"none":                 `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`,
		"null":                 `{"type":"object","required":["a"],"properties":{"a":{"type":"string","default":null}}}`,
		"no choice":            `{"type":"object","required":["a"],"properties":{"a":{"type":"string","enum":["x"],"default":"y"}}}`,
		"another type":         `{"type":"object","required":["a"],"properties":{"a":{"type":"boolean","default":"true"}}}`,
		"half":                 `{"type":"object","required":["a"],"properties":{"a":{"type":"integer","default":1.5}}}`,
		"what it does not fit": `{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":2,"default":1}}}`,
		"no form":              `{"type":"object","properties":{"a":{"type":"object"}}}`,
	} {
		_, complete := form.Defaults(json.RawMessage(schema))
		require.False(t, complete, name)
	}
	got, complete = form.Defaults(nil)
	require.True(t, complete)
	require.Empty(t, got)
}

func FuzzFields(f *testing.F) {
	f.Add([]byte(schema), "Bo")
	f.Add([]byte(`{"properties":{"a":{"type":"string","$ref":"https://x.example/s"}}}`), "x")
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"("}}}`), "x")
	f.Fuzz(func(t *testing.T, raw []byte, value string) {
		fields, err := form.Fields(raw)
		if err != nil {
			return
		}
		require.LessOrEqual(t, len(fields), form.MaxFields)
		got, err := form.Read(raw, func(string) []string { return []string{value} })
		if err == nil {
			_, err = json.Marshal(got)
			require.NoError(t, err)
		}
	})
}
