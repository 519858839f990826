package discovery

import (
	"slices"
	"strings"
)

// Challenge is one challenge of a WWW-Authenticate header (RFC 9110 section 11.6.1).
type Challenge struct {
	// Scheme and the names of Params are in lower case.
	Scheme string
	Params map[string]string
}

const (
	maxHeader = 16 << 10
	maxParams = 64
)

// ParseChallenges reads header values. What is malformed is skipped: half a challenge must not hide a whole one.
func ParseChallenges(values []string) []Challenge {
	var out []Challenge
	params := 0
	for _, value := range values {
		if len(value) > maxHeader {
			continue
		}
		p := scanner{rest: value}
		for params < maxParams {
			p.skip(" \t,")
			word := p.token()
			if word == "" {
				if p.rest == "" {
					break
				}
				p.rest = p.rest[1:] // not the start of anything
				continue
			}
			params++
			if name, val, ok := p.param(word); ok {
				if len(out) > 0 {
					c := &out[len(out)-1]
					// The first of a repeated parameter counts; a proxy can only append.
					if _, taken := c.Params[name]; !taken {
						c.Params[name] = val
					}
				}
				continue
			}
			out = append(out, Challenge{Scheme: strings.ToLower(word), Params: map[string]string{}})
			p.skipToken68()
		}
	}
	return out
}

// Bearer is what a bearer challenge says (RFC 6750 section 3, RFC 9728 section 5.1).
type Bearer struct {
	ResourceMetadata string
	Scopes           []string
	Error            string
}

// BearerChallenge returns the first bearer challenge; false if there is none.
func BearerChallenge(values []string) (Bearer, bool) {
	for _, c := range ParseChallenges(values) {
		if c.Scheme == "bearer" {
			return Bearer{
				ResourceMetadata: c.Params["resource_metadata"],
				Scopes:           shortScopes(Scopes(c.Params["scope"])),
				Error:            c.Params["error"],
			}, true
		}
	}
	return Bearer{}, false
}

type scanner struct{ rest string }

func (s *scanner) skip(set string) { s.rest = strings.TrimLeft(s.rest, set) }

func (s *scanner) token() string {
	end := strings.IndexFunc(s.rest, func(r rune) bool { return !tokenChar(r) })
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

// param reads "= value" after a name; it consumes nothing if there is none.
func (s *scanner) param(name string) (lower, value string, ok bool) {
	after := strings.TrimLeft(s.rest, " \t")
	if !strings.HasPrefix(after, "=") || strings.HasPrefix(after, "==") {
		return "", "", false
	}
	s.rest = strings.TrimLeft(after[1:], " \t")
	if !strings.HasPrefix(s.rest, `"`) {
		end := strings.IndexAny(s.rest, " \t,")
		if end < 0 {
			end = len(s.rest)
		}
		value = s.rest[:end]
		s.rest = s.rest[end:]
		return strings.ToLower(name), value, true
	}
	var b strings.Builder
	for i := 1; i < len(s.rest); i++ {
		switch c := s.rest[i]; {
		case c == '\\' && i+1 < len(s.rest):
			i++
			b.WriteByte(s.rest[i])
		case c == '"':
			s.rest = s.rest[i+1:]
			return strings.ToLower(name), b.String(), true
		default:
			b.WriteByte(c)
		}
	}
	s.rest = "" // the quote never ends, so the value is not known
	return "", "", true
}

// skipToken68 drops the credentials-like form of a challenge (RFC 9110 section 11.2), which is one word up to a comma.
func (s *scanner) skipToken68() {
	after := strings.TrimLeft(s.rest, " \t")
	end := strings.IndexAny(after, " \t,")
	if end < 0 {
		end = len(after)
	}
	if word := after[:end]; word != "" && strings.Trim(word, "=") != "" && !strings.ContainsAny(strings.TrimRight(word, "="), `="`) &&
		!strings.HasPrefix(strings.TrimLeft(after[end:], " \t"), "=") {
		s.rest = after[end:]
	}
}

func tokenChar(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

const (
	maxScopes      = 64
	maxScopeLength = 512
	// maxNeededLength is for what a server wants a token to be good for.
	maxNeededLength = 128
)

// Scopes splits a scope string and keeps what can be a scope (RFC 6749 section 3.3), each once, in order.
func Scopes(raw string) []string { return cleanScopes(strings.Fields(raw)) }

// shortScopes keeps what is no longer than names of scopes are: what a server says that it needs is stored and shown, and
// must not hold a token that it was sent.
func shortScopes(scopes []string) []string {
	return slices.DeleteFunc(scopes, func(s string) bool { return len(s) > maxNeededLength })
}

func cleanScopes(in []string) []string {
	var out []string
	seen := map[string]bool{}
	for _, s := range in {
		valid := s != "" && len(s) <= maxScopeLength && !seen[s] && !strings.ContainsFunc(s, func(r rune) bool {
			return r <= ' ' || r > '~' || r == '"' || r == '\\'
		})
		if valid && len(out) < maxScopes {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}
