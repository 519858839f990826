package inputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"
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
}

// Option of a select or multiple.
type Option struct {
	Value, Label string
	Selected     bool
}

// FieldError says which field of a form is wrong, in words for the person.
type FieldError struct{ Field, Problem string }

// Error implements error. It does not quote what was filled in.
func (e *FieldError) Error() string { return e.Field + ": " + e.Problem }

// ErrSchema says that no form can be made of a schema (MCP elicitation, "Requested Schema").
var ErrSchema = errors.New("inputs: schema is not a flat object of strings, numbers, booleans and enumerations")

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

// parse reads a schema; an absent one is a question without fields.
func parse(schema json.RawMessage) (o object, err error) {
	if len(schema) == 0 {
		return o, nil
	}
	if err := json.Unmarshal(schema, &o); err != nil || o.Type != "object" && o.Type != "" || len(o.Properties) > MaxFields {
		return o, ErrSchema
	}
	return o, nil
}

// Fields makes a form of a schema: required fields first, then by name. Errors wrap [ErrSchema].
func Fields(schema json.RawMessage) ([]Field, error) {
	o, err := parse(schema)
	if err != nil {
		return nil, err
	}
	var out []Field
	for name, p := range o.Properties {
		f, ok := field(name, p, slices.Contains(o.Required, name))
		if !ok {
			return nil, fmt.Errorf("%w: property %.64q", ErrSchema, name)
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
	f := Field{Name: name, Title: p.Title, Description: p.Description, Required: required}
	if f.Title == "" {
		f.Title = name
	}
	switch p.Type {
	case "boolean":
		f.Kind, f.Checked = "checkbox", string(p.Default) == "true"
	case "number", "integer":
		f.Kind = "number"
		var n json.Number
		if json.Unmarshal(p.Default, &n) == nil {
			f.Value = n.String()
		}
	case "string":
		_ = json.Unmarshal(p.Default, &f.Value) // a default of another type is none
		f.Kind = "text"
		switch p.Format {
		case "email", "date":
			f.Kind = p.Format
		case "uri":
			f.Kind = "url"
		}
		if f.Options = options(p, []string{f.Value}); len(f.Options) > 0 {
			f.Kind = "select"
		}
	case "array":
		if p.Items == nil {
			return f, false
		}
		var selected []string
		_ = json.Unmarshal(p.Default, &selected)
		f.Kind, f.Options = "multiple", options(*p.Items, selected)
		if len(f.Options) == 0 {
			return f, false
		}
	default:
		return f, false
	}
	return f, len(f.Options) <= maxOptions
}

func options(p property, selected []string) (out []Option) {
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
	for i := range out {
		out[i].Selected = slices.Contains(selected, out[i].Value)
	}
	return out
}

// Parse reads a filled-in form and checks it against the schema. get returns the values of a field. Errors are
// [*FieldError], or wrap [ErrSchema].
func Parse(schema json.RawMessage, get func(name string) []string) (map[string]any, error) {
	fields, err := Fields(schema)
	if err != nil {
		return nil, err
	}
	o, err := parse(schema)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, f := range fields {
		value, ok, problem := read(f, get(f.Name))
		if ok && problem == "" && !o.Properties[f.Name].allow(value) {
			problem = "does not fit what the server allows"
		}
		switch {
		case problem != "":
			return nil, &FieldError{f.Title, problem}
		case ok:
			out[f.Name] = value
		case f.Required:
			return nil, &FieldError{f.Title, "is needed"}
		}
	}
	return out, nil
}

func read(f Field, values []string) (value any, ok bool, problem string) {
	if f.Kind == "checkbox" {
		return len(values) > 0, true, ""
	}
	if f.Kind == "multiple" {
		list := []any{}
		for _, v := range values {
			if !f.offers(v) {
				return nil, false, "is not one of the choices"
			}
			list = append(list, v)
		}
		return list, len(list) > 0 || f.Required, ""
	}
	text := ""
	if len(values) > 0 {
		text = values[0]
	}
	switch {
	case len(text) > maxValue:
		return nil, false, "is too long"
	case text == "":
		return nil, false, ""
	case f.Kind == "select" && !f.offers(text):
		return nil, false, "is not one of the choices"
	case f.Kind == "number":
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsInf(n, 0) || math.IsNaN(n) {
			return nil, false, "is not a number"
		}
		return n, true, ""
	case f.Kind == "url":
		if u, err := url.Parse(text); err != nil || u.Scheme == "" {
			return nil, false, "is not an address"
		}
	}
	return text, true, ""
}

func (f Field) offers(value string) bool {
	return slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == value })
}
