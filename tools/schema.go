package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// maxComplaint is the most bytes of a complaint that a model is shown.
const maxComplaint = 2 << 10

// Schema is a compiled JSON Schema (draft 2020-12 or draft 7). It is safe for concurrent use.
type Schema struct {
	raw      json.RawMessage
	object   bool
	resolved *jsonschema.Resolved
}

// CompileSchema reads a schema. References to other documents are an error: nothing is fetched.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("not a JSON Schema: %w", err)
	}
	return &Schema{raw: raw, object: s.Type == "object", resolved: resolved}, nil
}

// Raw is the schema as it was read.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Object says that the schema describes nothing but objects.
func (s *Schema) Object() bool { return s.object }

// Check says what of value, as encoding/json reads one into an any, does not fit. Its text is for the model that made the
// value, and bounded.
func (s *Schema) Check(value any) error {
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	text := strings.ToValidUTF8(strings.TrimPrefix(err.Error(), "validating root: "), "")
	if len(text) > maxComplaint {
		text = strings.ToValidUTF8(text[:maxComplaint], "") + "…"
	}
	return errors.New(text)
}
