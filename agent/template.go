package agent

import (
	"fmt"
	"regexp"
	"strings"
)

// MissingKeyError says that an instruction names a state key that is not there.
type MissingKeyError struct{ Key string }

// Error implements error.
func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("instruction names {%s}, which is not in the session's state; write {%s?} where it may be missing", e.Key, e.Key)
}

// Render replaces {key} in an instruction by what lookup returns, as ADK does: a name that is no state key ("{ }", JSON)
// stays as it is, a missing {key} is a [*MissingKeyError], a missing {key?} becomes nothing.
func Render(template string, lookup func(key string) (string, bool)) (string, error) {
	var missing *MissingKeyError
	out := regexp.MustCompile(`\{+[^{}]*\}+`).ReplaceAllStringFunc(template, func(match string) string {
		name := strings.TrimSpace(strings.Trim(match, "{}"))
		key, optional := strings.CutSuffix(name, "?")
		if !stateKey(key) {
			return match
		}
		value, ok := lookup(key)
		if !ok && !optional && missing == nil {
			missing = &MissingKeyError{Key: key}
		}
		return value
	})
	if missing != nil {
		return "", missing
	}
	return out, nil
}

// TemplateKeys lists the state keys that an instruction names, in order, each once.
func TemplateKeys(template string) []string {
	var keys []string
	seen := map[string]bool{}
	// The lookup finds every key, so none is missing.
	_, _ = Render(template, func(key string) (string, bool) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
		return "", true
	})
	return keys
}

// artifact finds a placeholder for an artifact in a template; empty if there is none.
func artifact(template string) string {
	return regexp.MustCompile(`\{+\s*artifact\.[^{}]*\}+`).FindString(template)
}

func stateKey(name string) bool {
	if scope, rest, scoped := strings.Cut(name, ":"); scoped && (scope == "app" || scope == "user" || scope == "temp") {
		name = rest
	}
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name)
}
