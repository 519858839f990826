package scripted

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/genai"
)

// filler replaces the placeholders of a step by values of the view.
type filler struct {
	view    *view
	pattern *regexp.Regexp
}

func newFiller(v *view) filler {
	return filler{view: v, pattern: regexp.MustCompile(`\{\{\s*([^{}]*?)\s*\}\}`)}
}

// text fills placeholders inside a text; values that are no strings appear as JSON.
func (f filler) text(s string) (string, error) {
	var first error
	out := f.pattern.ReplaceAllStringFunc(s, func(found string) string {
		value, err := f.lookup(f.pattern.FindStringSubmatch(found)[1])
		if err != nil {
			if first == nil {
				first = err
			}
			return ""
		}
		if text, ok := value.(string); ok {
			return text
		}
		encoded, err := json.Marshal(value)
		if err != nil && first == nil {
			first = fmt.Errorf("%s is no JSON value", found)
		}
		return string(encoded)
	})
	return out, first
}

// value returns a filled deep copy, so that callers can do with an answer's arguments what they like.
func (f filler) value(in any) (any, error) {
	switch in := in.(type) {
	case string:
		if found := f.pattern.FindStringSubmatch(in); found != nil && found[0] == in {
			value, err := f.lookup(found[1])
			if err != nil {
				return nil, err
			}
			return copyOf(value), nil
		}
		return f.text(in)
	case map[string]any:
		return f.args(in)
	case []any:
		out := make([]any, len(in))
		for i, v := range in {
			filled, err := f.value(v)
			if err != nil {
				return nil, err
			}
			out[i] = filled
		}
		return out, nil
	default:
		return in, nil
	}
}

func (f filler) args(in map[string]any) (map[string]any, error) {
	out := make(map[string]any, len(in))
	for _, name := range slices.Sorted(maps.Keys(in)) { // sorted: of several errors always the same one
		filled, err := f.value(in[name])
		if err != nil {
			return nil, err
		}
		out[name] = filled
	}
	return out, nil
}

func (f filler) lookup(name string) (any, error) {
	keys := strings.Split(name, ".")
	var response *genai.FunctionResponse
	switch {
	case name == "user_text":
		return f.view.userText, nil
	case keys[0] == "last_response":
		if n := len(f.view.responses); n > 0 {
			response = f.view.responses[n-1]
		}
		keys = keys[1:]
	case keys[0] == "response" && len(keys) > 1:
		for _, r := range slices.Backward(f.view.responses) {
			if r.Name == keys[1] {
				response = r
				break
			}
		}
		keys = keys[2:]
	default:
		return nil, fmt.Errorf(
			"{{%s}} is unknown; there are {{last_response.path}}, {{response.<tool>.path}} and {{user_text}}", name)
	}
	if response == nil {
		return nil, fmt.Errorf("{{%s}}: no such function response in the view", name)
	}
	if value, ok := find(response.Response, keys); ok {
		return value, nil
	}
	return nil, fmt.Errorf("{{%s}}: the response of %s has the fields %s",
		name, response.Name, strings.Join(slices.Sorted(maps.Keys(response.Response)), ", "))
}

// find follows a path, first in the response itself, then in what wrappers hold.
func find(response map[string]any, keys []string) (any, bool) {
	if value, ok := follow(response, keys); ok {
		return value, true
	}
	for _, wrapper := range [][]string{{"structuredContent"}, {"result"}, {"output"}, {"content", "0", "text"}} {
		inner, ok := follow(response, wrapper)
		if !ok {
			continue
		}
		if value, ok := follow(inner, keys); ok {
			return value, true
		}
		// A result of an MCP tool can itself be wrapped.
		if m, isMap := inner.(map[string]any); isMap {
			if value, ok := find(m, keys); ok {
				return value, true
			}
		}
	}
	return nil, false
}

// follow opens strings that are JSON on its way.
func follow(value any, keys []string) (any, bool) {
	for _, key := range keys {
		if s, ok := value.(string); ok {
			var opened any
			if json.Unmarshal([]byte(s), &opened) != nil {
				return nil, false
			}
			value = opened
		}
		switch at := value.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			value = at[i]
		default:
			return nil, false
		}
	}
	return value, true
}

func copyOf(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			out[k] = copyOf(v)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = copyOf(v)
		}
		return out
	default:
		return value
	}
}
