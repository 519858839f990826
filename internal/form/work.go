package form

import (
	"errors"
	"regexp/syntax"
)

// Bounds of the work that one check may take: about a second. Without references a schema is a tree, so that no part of it is
// applied to a part of a value twice, and the product of their sizes bounds the steps. A pattern may take a step for each of
// its instructions and each byte of a text.
const (
	maxSteps        = 2 << 20
	maxPatternSteps = 32 << 20
)

var errTooMuch = errors.New("it is too large to be checked by a schema of this size; make it smaller")

// weight is the size of a JSON value: its parts and the bytes of its texts, names of properties included.
type weight struct{ parts, text int }

func weigh(v any) (w weight) {
	w.parts = 1
	add := func(o weight) { w.parts, w.text = w.parts+o.parts, w.text+o.text }
	switch v := v.(type) {
	case string:
		w.text = len(v)
	case map[string]any:
		for key, value := range v {
			w.text += len(key)
			add(weigh(value))
		}
	case []any:
		for _, value := range v {
			add(weigh(value))
		}
	}
	return w
}

// instructions counts those of all patterns in a schema, and of what only looks like one.
func instructions(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if pattern, ok := value.(string); ok && key == "pattern" {
				n += program(pattern)
			}
			if by, ok := value.(map[string]any); ok && key == "patternProperties" {
				for pattern := range by {
					n += program(pattern)
				}
			}
			n += instructions(value)
		}
	case []any:
		for _, value := range v {
			n += instructions(value)
		}
	}
	return n
}

// program is the size of a pattern; 0 for one that whoever compiles it refuses.
func program(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return 0
	}
	p, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(p.Inst)
}
