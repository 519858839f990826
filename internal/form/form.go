package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
)

// Bounds of a form; a server that goes past them is refused before anybody is asked.
const (
	MaxFields  = 64
	maxOptions = 256
	maxValue   = 16 << 10
)

// Field is one field of a form.
type Field struct {
	Name        string
	Title       string
	Description string
	// Kind is one of text, email, url, date, datetime-local, number, checkbox, select and multiple.
	Kind     string
	Required bool
	// Value is the default, as text; Checked that of a checkbox.
	Value   string
	Checked bool
	Options []Option

	preset any // the default, if the field allows it
	limits limits
}

// Option of a select or multiple.
type Option struct {
	Value, Label string
	Selected     bool
}

// FieldError says which field of a form is wrong, in words for the person.
type FieldError struct {
	// Field is its title, Name its name in the schema.
	Field, Problem, Name string
}

// Error implements error. It does not quote what was filled in.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ErrSchema says that no form can be made of a schema (MCP elicitation, "Requested Schema").
var ErrSchema = errors.New("schema is not a flat object of strings, numbers, booleans and choices")

// property is the part of JSON Schema that elicitation uses.
type property struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Format      string          `json:"format"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"`
	OneOf       []constant      `json:"oneOf"`
	AnyOf       []constant      `json:"anyOf"`
	Items       *property       `json:"items"`
	Default     json.RawMessage `json:"default"`

	limits
}

type constant struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

type object struct {
	Type       string              `json:"type"`
	Properties map[string]property `json:"properties"`
	Required   []string            `json:"required"`
}

// Fields makes a form of a schema: required fields first, then by name. An empty schema is a question without fields. Errors
// wrap [ErrSchema] and name the property.
func Fields(schema json.RawMessage) ([]Field, error) {
	var o object
	if len(schema) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(schema, &o); err != nil || o.Type != "object" && o.Type != "" {
		return nil, ErrSchema
	}
	if n := len(o.Properties); n > MaxFields {
		return nil, fmt.Errorf("%w: it has %d properties, at most %d are allowed", ErrSchema, n, MaxFields)
	}
	var out []Field
	for name, p := range o.Properties {
		f, ok := field(name, p, slices.Contains(o.Required, name))
		if !ok {
			return nil, fmt.Errorf("%w: property %q", ErrSchema, shorten(name))
		}
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i].Required != out[j].Required {
			return out[i].Required
		}
		return out[i].Name < out[j].Name
	})
	return out, nil
}

func field(name string, p property, required bool) (Field, bool) {
	f := Field{Name: name, Title: p.Title, Description: p.Description, Required: required, limits: p.limits}
	f.limits.whole = p.Type == "integer"
	if f.Title == "" {
		f.Title = name
	}
	switch p.Type {
	case "boolean":
		f.Kind = "checkbox"
		f.preset = preset(p.Default, func(v bool) bool { f.Checked = v; return true })
	case "number", "integer":
		f.Kind = "number"
		f.preset = preset(p.Default, func(v float64) bool { return f.limits.allow(v) })
		if n, ok := f.preset.(float64); ok {
			f.Value = strconv.FormatFloat(n, 'f', -1, 64)
		}
	case "string":
		f.Kind = "text"
		switch p.Format {
		case "email", "date":
			f.Kind = p.Format
		case "uri":
			f.Kind = "url"
		}
		if f.Options = options(p); len(f.Options) > 0 {
			f.Kind = "select"
		}
		f.preset = preset(p.Default, func(v string) bool { return (f.Kind != "select" || f.offers(v)) && f.limits.allow(v) })
		f.Value, _ = f.preset.(string)
		f.choose(f.Value)
	case "array":
		if p.Items == nil {
			return f, false
		}
		f.Kind, f.Options = "multiple", options(*p.Items)
		if len(f.Options) == 0 {
			return f, false
		}
		f.preset = preset(p.Default, func(all []string) bool {
			return f.limits.allow(all) && !slices.ContainsFunc(all, func(v string) bool { return !f.offers(v) })
		})
		all, _ := f.preset.([]string)
		f.choose(all...)
	default:
		return f, false
	}
	return f, len(f.Options) <= maxOptions
}

// preset reads a default of type T; nil if there is none, or none that the field allows.
func preset[T any](raw json.RawMessage, allowed func(T) bool) any {
	var v *T
	if len(raw) == 0 || json.Unmarshal(raw, &v) != nil || v == nil || !allowed(*v) {
		return nil
	}
	return *v
}

func (f *Field) choose(values ...string) {
	for i := range f.Options {
		f.Options[i].Selected = slices.Contains(values, f.Options[i].Value)
	}
}

func (f *Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}

func options(p property) (out []Option) {
	for i, value := range p.Enum {
		label := value
		if i < len(p.EnumNames) {
			label = p.EnumNames[i]
		}
		out = append(out, Option{Value: value, Label: label})
	}
	for _, c := range append(p.OneOf, p.AnyOf...) {
		label := c.Title
		if label == "" {
			label = c.Const
		}
		out = append(out, Option{Value: c.Const, Label: label})
	}
	return out
}

// maxShown bounds a property's name in an error, in bytes.
const maxShown = 64

func shorten(name string) string { return name[:min(len(name), maxShown)] }
