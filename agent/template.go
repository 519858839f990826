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
	if strings.HasPrefix(e.Key, ArtifactKey) {
		return fmt.Sprintf("instruction names {%s}, and there is no such artifact; write {%s?} where it may be missing", e.Key, e.Key)
	}
	return fmt.Sprintf("instruction names {%s}, which is not in the session's state; write {%s?} where it may be missing", e.Key, e.Key)
}

// ArtifactKey begins the keys that are no state but an artifact's text: {artifact.report.txt}.
const ArtifactKey = "artifact."

// Render replaces {key} in an instruction by what lookup returns, as ADK does; of {artifact.NAME} the key is the whole of it. A name that is no state key ("{ }", JSON)
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
		if !seen[key] && !strings.HasPrefix(key, ArtifactKey) {
			seen[key] = true
			keys = append(keys, key)
		}
		return "", true
	})
	return keys
}

func stateKey(name string) bool {
	if artifact, ok := strings.CutPrefix(name, ArtifactKey); ok {
		return artifact != ""
	}
	if scope, rest, scoped := strings.Cut(name, ":"); scoped && (scope == "app" || scope == "user" || scope == "temp") {
		name = rest
	}
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name)
}
