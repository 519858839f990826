package openai

import (
	"strings"

	"google.golang.org/genai"
)

// jsonSchema converts the OpenAPI dialect of genai to JSON Schema: lower-case types, and null as a type.
func jsonSchema(s *genai.Schema) map[string]any {
	if s == nil {
		return nil
	}
	out := map[string]any{}
	if s.Type != "" && s.Type != genai.TypeUnspecified {
		name := strings.ToLower(string(s.Type))
		out["type"] = name
		if s.Nullable != nil && *s.Nullable {
			out["type"] = []string{name, "null"}
		}
	}
	texts := map[string]string{"title": s.Title, "description": s.Description, "pattern": s.Pattern}
	if s.Format != "enum" { // a marker of the OpenAPI dialect, no format
		texts["format"] = s.Format
	}
	for key, value := range texts {
		if value != "" {
			out[key] = value
		}
	}
	for key, value := range map[string]*int64{
		"maxItems": s.MaxItems, "minItems": s.MinItems, "maxLength": s.MaxLength, "minLength": s.MinLength,
		"maxProperties": s.MaxProperties, "minProperties": s.MinProperties,
	} {
		if value != nil {
			out[key] = *value
		}
	}
	for key, value := range map[string]*float64{"maximum": s.Maximum, "minimum": s.Minimum} {
		if value != nil {
			out[key] = *value
		}
	}
	if s.Default != nil {
		out["default"] = s.Default
	}
	if s.Example != nil {
		out["examples"] = []any{s.Example}
	}
	if len(s.Enum) > 0 {
		values := make([]any, 0, len(s.Enum)+1)
		for _, v := range s.Enum {
			values = append(values, v)
		}
		if s.Nullable != nil && *s.Nullable {
			values = append(values, nil)
		}
		out["enum"] = values
	}
	if len(s.Required) > 0 {
		out["required"] = s.Required
	}
	if s.Items != nil {
		out["items"] = jsonSchema(s.Items)
	}
	if len(s.Properties) > 0 {
		properties := make(map[string]any, len(s.Properties))
		for name, property := range s.Properties {
			properties[name] = jsonSchema(property)
		}
		out["properties"] = properties
	}
	if len(s.AnyOf) > 0 {
		alternatives := make([]any, 0, len(s.AnyOf))
		for _, alternative := range s.AnyOf {
			alternatives = append(alternatives, jsonSchema(alternative))
		}
		out["anyOf"] = alternatives
	}
	return out
}
