package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
)

// maxFields is the most fields of a form.
const maxFields = 64

// form is the restricted JSON Schema of an elicitation: a flat object of primitives and choices (SEP-1034, SEP-1330).
type form struct {
	Type       string           `json:"type"`
	Properties map[string]field `json:"properties"`
	Required   []string         `json:"required"`
}

type field struct {
	choices
	Type    string          `json:"type"`
	Default json.RawMessage `json:"default"`
	Items   choices         `json:"items"`
}

// choices of a field, or of each item of a field with several; empty when any text will do.
type choices struct {
	Enum  []string `json:"enum"`
	OneOf []choice `json:"oneOf"`
	AnyOf []choice `json:"anyOf"`
}

type choice struct {
	Const string `json:"const"`
}

func (c choices) all() []string {
	out := slices.Clone(c.Enum)
	for _, o := range append(slices.Clone(c.OneOf), c.AnyOf...) {
		out = append(out, o.Const)
	}
	return out
}

func (c choices) allow(v any) bool {
	text, ok := v.(string)
	all := c.all()
	return ok && (len(all) == 0 || slices.Contains(all, text))
}

// checkForm says what keeps a schema from being shown to a person. An absent one is a question without fields.
func checkForm(schema json.RawMessage) error {
	f, err := parseForm(schema)
	if err != nil {
		return err
	}
	if f.Type != "" && f.Type != "object" {
		return fmt.Errorf("its schema has the type %q, not object", cut(f.Type, 32))
	}
	if n := len(f.Properties); n > maxFields {
		return fmt.Errorf("it has %d fields; at most %d are allowed", n, maxFields)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Properties)) {
		p := f.Properties[name]
		switch p.Type {
		case "string", "number", "integer", "boolean":
		case "array":
			if len(p.Items.all()) == 0 {
				return fmt.Errorf("field %q is a list without choices", cut(name, 64))
			}
		default:
			return fmt.Errorf("field %q has the type %q; known are string, number, integer, boolean and array", cut(name, 64), cut(p.Type, 32))
		}
	}
	return nil
}

// defaults fills a form in; ok is false when a required field has no default that its own schema allows.
func defaults(schema json.RawMessage) (content map[string]any, ok bool) {
	f, err := parseForm(schema)
	if err != nil {
		return nil, false
	}
	content = map[string]any{}
	for name, p := range f.Properties {
		if v, ok := p.preset(); ok {
			content[name] = v
		}
	}
	for _, name := range f.Required {
		if _, ok := content[name]; !ok {
			return nil, false
		}
	}
	return content, true
}

func (p field) preset() (any, bool) {
	var v any
	if len(p.Default) == 0 || json.Unmarshal(p.Default, &v) != nil {
		return nil, false
	}
	switch p.Type {
	case "string":
		return v, p.allow(v)
	case "boolean":
		_, ok := v.(bool)
		return v, ok
	case "number", "integer":
		n, ok := v.(float64)
		return v, ok && (p.Type == "number" || n == math.Trunc(n))
	case "array":
		items, ok := v.([]any)
		return v, ok && !slices.ContainsFunc(items, func(item any) bool { return !p.Items.allow(item) })
	default:
		return nil, false
	}
}

func parseForm(schema json.RawMessage) (form, error) {
	var f form
	if len(schema) == 0 {
		return f, nil
	}
	if err := json.Unmarshal(schema, &f); err != nil {
		return f, fmt.Errorf("its schema is not a flat object of simple fields")
	}
	return f, nil
}
