package auth

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// Scrubber removes the secrets that one attempt used from what that attempt produced: a server that echoes its caller's
// token must not get it into the log. The zero value is ready; safe for concurrent use.
type Scrubber struct {
	mu     sync.Mutex
	values []string
}

// minScrub: shorter secrets would tear holes into ordinary text.
const minScrub = 6

// Add remembers a secret and the forms in which it commonly reappears.
func (s *Scrubber) Add(secret Secret) {
	v := secret.Reveal()
	if len(v) < minScrub {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	quoted, err := json.Marshal(v)
	if err != nil {
		quoted = []byte(v)
	}
	for _, form := range []string{v, url.QueryEscape(v), url.PathEscape(v), strings.Trim(string(quoted), `"`), base64.StdEncoding.EncodeToString([]byte(v)), base64.RawURLEncoding.EncodeToString([]byte(v))} {
		if !slices.Contains(s.values, form) {
			s.values = append(s.values, form)
		}
	}
	slices.SortFunc(s.values, func(a, b string) int { return len(b) - len(a) }) // an escaped form may contain the plain one
}

// Scrub returns text without them.
func (s *Scrubber) Scrub(text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.values {
		text = strings.ReplaceAll(text, v, redacted)
	}
	return text
}

// ScrubValue scrubs every string in a JSON-like value, keys included.
func (s *Scrubber) ScrubValue(v any) any {
	switch v := v.(type) {
	case string:
		return s.Scrub(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, value := range v {
			out[s.Scrub(key)] = s.ScrubValue(value)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, value := range v {
			out[i] = s.ScrubValue(value)
		}
		return out
	default:
		return v
	}
}
