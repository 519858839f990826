package form

import (
	"encoding/json"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// Defaults fills in what has a default that its own field allows. complete is false when a required field has none, or
// when no form can be made of the schema.
func Defaults(schema json.RawMessage) (content map[string]any, complete bool) {
	fields, err := Fields(schema)
	if err != nil {
		return nil, false
	}
	content, complete = map[string]any{}, true
	for _, f := range fields {
		switch {
		case f.preset != nil:
			content[f.Name] = f.preset
		case f.Required:
			complete = false
		}
	}
	return content, complete
}

// Read reads a filled-in form and checks it against the schema. get returns the values of a field. Errors are
// [*FieldError], or wrap [ErrSchema].
func Read(schema json.RawMessage, get func(name string) []string) (map[string]any, error) {
	fields, err := Fields(schema)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for i := range fields {
		f := &fields[i]
		value, ok, problem := read(f, get(f.Name))
		if ok && problem == "" && !f.limits.allow(value) {
			problem = "does not fit what the server allows"
		}
		switch {
		case problem != "":
			return nil, &FieldError{f.Title, problem, f.Name}
		case ok:
			out[f.Name] = value
		case f.Required:
			return nil, &FieldError{f.Title, "is needed", f.Name}
		}
	}
	return out, nil
}

func read(f *Field, values []string) (value any, ok bool, problem string) {
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

// Refill puts in what was filled in, in place of the default.
func (f *Field) Refill(values []string) {
	f.Value, f.Checked = "", len(values) > 0
	if len(values) > 0 {
		f.Value = values[0]
	}
	f.choose(values...)
}
