package agent

import (
	"fmt"
	"regexp"
	"strings"
)

// SecretRef is a reference to a secret: ${env:TARRY_SECRET_NAME} or ${file:relative/path}. The zero value means no
// secret. A definition and its hash contain the reference; the value is resolved at the moment of use, by the process
// that uses it.
type SecretRef string

// SecretTemplate is text in which secret references may stand, such as "Bearer ${env:TARRY_SECRET_TOKEN}".
type SecretTemplate string

// SecretEnvPrefix is the only prefix of environment variables that a definition may refer to: without it an agent's
// author could read any variable of the service.
const SecretEnvPrefix = "TARRY_SECRET_"

func secretPattern() *regexp.Regexp {
	return regexp.MustCompile(`\$\{(env|file):([^}]*)\}`)
}

// Source of a secret reference.
type Source struct {
	// Kind is "env" or "file".
	Kind string
	// Name is the variable or the path below the configured folder.
	Name string
}

// Parse splits a reference. A literal is an error: it would end up in the store.
func (r SecretRef) Parse() (Source, error) {
	m := secretPattern().FindStringSubmatch(string(r))
	if m == nil || m[0] != string(r) {
		return Source{}, fmt.Errorf("secret must be a reference such as ${env:%sNAME} or ${file:NAME}, not a literal", SecretEnvPrefix)
	}
	return checkSource(Source{Kind: m[1], Name: m[2]})
}

// Expand replaces every reference in t by what resolve returns for it.
func (t SecretTemplate) Expand(resolve func(Source) (string, error)) (string, error) {
	var first error
	out := secretPattern().ReplaceAllStringFunc(string(t), func(match string) string {
		src, err := SecretRef(match).Parse()
		if err == nil {
			var value string
			if value, err = resolve(src); err == nil {
				return value
			}
		}
		if first == nil {
			first = err
		}
		return ""
	})
	if first != nil {
		return "", first
	}
	return out, nil
}

// References lists the secrets that t refers to.
func (t SecretTemplate) References() ([]Source, error) {
	var out []Source
	for _, match := range secretPattern().FindAllString(string(t), -1) {
		src, err := SecretRef(match).Parse()
		if err != nil {
			return nil, err
		}
		out = append(out, src)
	}
	return out, nil
}

func checkSource(s Source) (Source, error) {
	switch {
	case s.Kind == "env" && (!strings.HasPrefix(s.Name, SecretEnvPrefix) || len(s.Name) == len(SecretEnvPrefix)):
		return s, fmt.Errorf("secret variable %q must begin with %s", s.Name, SecretEnvPrefix)
	case s.Kind == "file" && (s.Name == "" || strings.HasPrefix(s.Name, "/") || hasDotDot(s.Name)):
		return s, fmt.Errorf("secret file %q must be a path below the secrets folder", s.Name)
	}
	return s, nil
}

func hasDotDot(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return true
		}
	}
	return false
}
