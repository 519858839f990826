package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of a schema that any value may be described with, whoever wrote it: a model may have.
const (
	maxSchema    = 16 << 10 // bytes
	maxNesting   = 32
	maxComplaint = 1 << 10 // bytes of what is said to be wrong with a value
)

// Schema describes an answer: a JSON Schema (draft 2020-12 or draft 7) without references, which could lead elsewhere or in
// circles. Safe for concurrent use.
type Schema struct {
	resolved            *jsonschema.Resolved
	parts, instructions int
}

// Compile reads a schema. Errors wrap [ErrAnswerSchema].
func Compile(raw json.RawMessage) (*Schema, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("%w: it is longer than %d bytes", ErrAnswerSchema, maxSchema)
	}
	var tree map[string]any
	if err := json.Unmarshal(raw, &tree); err != nil || tree == nil {
		return nil, fmt.Errorf("%w: it is not a JSON object", ErrAnswerSchema)
	}
	if err := plain(tree, 0); err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("%w: %s", ErrAnswerSchema, clip(err.Error()))
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrAnswerSchema, clip(err.Error()))
	}
	return &Schema{resolved, weigh(tree).parts, instructions(tree)}, nil
}

// ErrAnswerSchema says that no answer can be checked by a schema.
var ErrAnswerSchema = errors.New("not a JSON Schema that an answer can be checked by")

func plain(v any, depth int) error {
	if depth > maxNesting {
		return fmt.Errorf("%w: it is nested deeper than %d", ErrAnswerSchema, maxNesting)
	}
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef" {
				return fmt.Errorf("%w: %s is not allowed; write out what it refers to", ErrAnswerSchema, key)
			}
			if err := plain(value, depth+1); err != nil {
				return err
			}
		}
	case []any:
		for _, value := range v {
			if err := plain(value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Check says what of a value, as encoding/json reads one into an any, does not fit. The text names the place and is bounded;
// it may quote the value. A value that it would take too long to check does not fit.
func (s *Schema) Check(value any) error {
	w := weigh(value)
	if s.parts*w.parts > maxSteps || s.instructions*w.text > maxPatternSteps {
		return errTooMuch
	}
	err := s.resolved.Validate(value)
	if err == nil {
		return nil
	}
	return errors.New(clip(strings.TrimPrefix(err.Error(), "validating root: ")))
}

func clip(text string) string {
	text = strings.ToValidUTF8(text, "")
	if len(text) > maxComplaint {
		text = strings.ToValidUTF8(text[:maxComplaint], "") + "…"
	}
	return text
}
