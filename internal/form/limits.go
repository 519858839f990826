package form

import (
	"math"
	"regexp"
	"regexp/syntax"
	"unicode/utf8"
)

// limits are the keywords of JSON Schema by which a server may narrow a field. No others are followed: by references a
// schema can lead elsewhere, or keep whoever checks it busy for ever.
type limits struct {
	MinLength        *float64 `json:"minLength"`
	MaxLength        *float64 `json:"maxLength"`
	Pattern          string   `json:"pattern"`
	Minimum          *float64 `json:"minimum"`
	Maximum          *float64 `json:"maximum"`
	ExclusiveMinimum *float64 `json:"exclusiveMinimum"`
	ExclusiveMaximum *float64 `json:"exclusiveMaximum"`
	MultipleOf       *float64 `json:"multipleOf"`
	MinItems         *float64 `json:"minItems"`
	MaxItems         *float64 `json:"maxItems"`

	whole bool // numbers are integers
}

// allow says whether a value that was filled in is within the limits.
func (l *limits) allow(value any) bool {
	switch v := value.(type) {
	case string:
		return between(float64(utf8.RuneCountInString(v)), l.MinLength, l.MaxLength) && matches(l.Pattern, v)
	case float64:
		return (!l.whole || v == math.Trunc(v)) && between(v, l.Minimum, l.Maximum) &&
			(l.ExclusiveMinimum == nil || v > *l.ExclusiveMinimum) && (l.ExclusiveMaximum == nil || v < *l.ExclusiveMaximum) &&
			(l.MultipleOf == nil || *l.MultipleOf <= 0 || multiple(v, *l.MultipleOf))
	case []any:
		return between(float64(len(v)), l.MinItems, l.MaxItems)
	case []string:
		return between(float64(len(v)), l.MinItems, l.MaxItems)
	default:
		return true
	}
}

func between(n float64, low, high *float64) bool {
	return (low == nil || n >= *low) && (high == nil || n <= *high)
}

// multiple lets a rest pass that is due to how fractions are kept.
func multiple(v, of float64) bool {
	n := v / of
	return math.Abs(n-math.Round(n)) < 1e-9*max(1, math.Abs(n))
}

// maxProgram bounds a pattern, in instructions: each byte of a value may cost as many steps.
const maxProgram = 4096

// matches leaves to the server what cannot be checked here: patterns that only a browser understands, and large ones.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return true
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(program.Inst) > maxProgram {
		return true
	}
	re, err := regexp.Compile(pattern)
	return err != nil || re.MatchString(text)
}
