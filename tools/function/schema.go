package function

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"tarry/tools"
)

// maxText is the most bytes of an error that a model is shown.
const maxText = 2 << 10

func parameterSchema[In any]() (json.RawMessage, *jsonschema.Resolved, error) {
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, nil, fmt.Errorf("schema of %s: %w", reflect.TypeFor[In](), err)
	}
	if k := reflect.TypeFor[In]().Kind(); k != reflect.Struct && k != reflect.Map {
		return nil, nil, fmt.Errorf("%s is no struct: a model gives arguments by name", reflect.TypeFor[In]())
	}
	// For a map the inferred type is "null or object"; a call always has an object.
	schema.Type, schema.Types = "object", nil
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, nil, fmt.Errorf("schema of %s: %w", reflect.TypeFor[In](), err)
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, nil, fmt.Errorf("schema of %s: %w", reflect.TypeFor[In](), err)
	}
	return raw, resolved, nil
}

// responseSchema is empty for types that say nothing or that JSON Schema cannot say: it only informs the model.
func responseSchema[Out any]() json.RawMessage {
	t := reflect.TypeFor[Out]()
	if t == reflect.TypeFor[tools.Result]() || t.Kind() == reflect.Interface {
		return nil
	}
	schema, err := jsonschema.For[Out](nil)
	if err != nil {
		return nil
	}
	if schema.Type != "object" {
		schema = &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{"result": schema}}
	}
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	return raw
}

func decode[In any](name string, schema *jsonschema.Resolved, args json.RawMessage) (In, error) {
	var in In
	refuse := func(err error) error {
		text := strings.TrimPrefix(err.Error(), "validating root: ")
		return &tools.Error{Message: cut(fmt.Sprintf("the arguments of %s do not fit its parameters: %s", name, text)), Cause: err}
	}
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || string(trimmed) == "null" {
		args = json.RawMessage("{}")
	}
	var value any
	if err := json.Unmarshal(args, &value); err != nil {
		return in, refuse(err)
	}
	if _, ok := value.(map[string]any); !ok {
		return in, refuse(fmt.Errorf("not a JSON object"))
	}
	if err := schema.Validate(value); err != nil {
		return in, refuse(err)
	}
	if err := json.Unmarshal(args, &in); err == nil {
		return in, nil
	}
	// A model may write the integer 3 as 3.0, which the schema allows and Go does not; encoding it again makes it 3.
	in = *new(In)
	again, err := json.Marshal(value)
	if err != nil {
		return in, refuse(err)
	}
	if err := json.Unmarshal(again, &in); err != nil {
		return in, refuse(err)
	}
	return in, nil
}

// cut shortens text to at most maxText bytes at the end of a character.
func cut(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxText {
		return text
	}
	const mark = "…"
	end := maxText - len(mark)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
