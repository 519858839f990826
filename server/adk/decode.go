package adk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

	"tarry/server/web"
)

func readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, web.Refusal(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	case err != nil:
		return nil, &web.RequestError{Status: http.StatusBadRequest, Text: "the body could not be read", Err: err}
	case web.TooDeep(body):
		return nil, invalid("the body nests deeper than %d objects and lists", web.MaxDepth)
	}
	return body, nil
}

// object reads a JSON object and spells its keys in camelCase; nothing and null are the empty object. What its values hold
// is left alone: they may be data.
func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var in map[string]json.RawMessage
	if err := decode(raw, &in); err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(in))
	for key, value := range in {
		if name := camel(key); name == key || in[name] == nil {
			out[name] = value
		}
	}
	return out, nil
}

// decode reads raw into v, which stays as it is when there is nothing or null.
func decode(raw json.RawMessage, v any) error {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	return nil
}

// camel spells a snake_case name in camelCase; a trailing underscore, as in type_, goes.
func camel(name string) string {
	if !strings.Contains(name, "_") {
		return name
	}
	var b strings.Builder
	up := false
	for i, r := range strings.TrimRight(name, "_") {
		switch {
		case r == '_' && i > 0:
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
