package agent

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

func (v *validator) toolset(a *Agent, field string, m *MCPToolset) {
	if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`).MatchString(m.Name) {
		v.add(a, field, "toolset name %q must be lower case letters, digits and underscores", m.Name)
	}
	if v.toolsets[m.Name] {
		v.add(a, field, "toolset name %q is used twice", m.Name)
	}
	v.toolsets[m.Name] = true
	if m.NamePrefix != "" && (!regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,31}$`).MatchString(m.NamePrefix) || Reserved(m.NamePrefix+"_")) {
		v.add(a, field+".tool_name_prefix", "%q must be letters, digits, underscores and dashes, at most 32, and no reserved name", m.NamePrefix)
	}
	v.confirm(a, field+".confirm", m)
	if m.Timeout < 0 {
		v.add(a, field+".timeout", "%s is negative; leave it out for the default", m.Timeout)
	}
	if m.ReadTimeout < 0 {
		v.add(a, field+".sse_read_timeout", "%s is negative; leave it out for the default", m.ReadTimeout)
	}
	v.transport(a, field, m)
	v.secrets(a, field+".headers", m.Headers)
	v.secrets(a, field+".env", m.Env)
	if m.Auth != nil {
		for _, p := range m.Auth.Problems() {
			v.add(a, field+"."+p.Field, "%s", p.Problem)
		}
	}
}

// confirm refuses names that would guard nothing: an approval that is never asked for is the mistake that nobody notices.
func (v *validator) confirm(a *Agent, field string, m *MCPToolset) {
	if m.RequireConfirmation && len(m.Confirm) > 0 {
		v.add(a, field, "names tools, but require_confirmation asks for all of them; remove one")
	}
	for i, name := range m.Confirm {
		switch {
		case name == "":
			v.add(a, field, "has an empty name; write the server's name of a tool")
		case slices.Contains(m.Confirm[:i], name):
			v.add(a, field, "names %q twice", name)
		case len(m.Filter) > 0 && !slices.Contains(m.Filter, name):
			v.add(a, field, "%q is not in tool_filter, so no model can call it; write the server's name of a tool, without tool_name_prefix", name)
		}
	}
}

func (v *validator) transport(a *Agent, field string, m *MCPToolset) {
	switch m.Transport {
	case TransportStreamableHTTP, TransportSSE:
		switch {
		case m.URL == "":
			v.add(a, field+".url", "missing")
		case hasUserInfo(m.URL):
			// The value may be a password, so it is not repeated.
			v.add(a, field+".url", "contains a user name or password; send it in headers, as a secret reference")
		case !webURL(m.URL):
			v.add(a, field+".url", "%q is not an http(s) URL", m.URL)
		}
		if m.Command != "" || len(m.Args) > 0 || len(m.Env) > 0 {
			v.add(a, field+".command", "only a stdio server has command, args and env")
		}
	case TransportStdio:
		if m.Command == "" {
			v.add(a, field+".command", "missing")
		}
		if m.URL != "" || len(m.Headers) > 0 {
			v.add(a, field+".url", "a stdio server has no url and no headers")
		}
		if m.Auth != nil {
			v.add(a, field+".auth_scheme", "a stdio server has no HTTP authorization; give it its secrets in env, as references")
		}
	default:
		v.add(a, field, "transport %q is not one of streamable_http, sse, stdio", m.Transport)
	}
}

// secrets checks headers or variables; a value that may be a secret is never repeated.
func (v *validator) secrets(a *Agent, field string, values map[string]SecretTemplate) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		refs, err := values[name].References()
		switch {
		case err != nil:
			v.add(a, field+"."+name, "%v", err)
		case len(refs) == 0 && values[name] != "" && (SecretName(name) || looksSecret(string(values[name]))):
			v.add(a, field+"."+name, "looks like a secret written out; use a reference such as ${env:%sNAME} or ${file:NAME}", SecretEnvPrefix)
		case strings.Contains(secretPattern().ReplaceAllString(string(values[name]), ""), "${"):
			v.add(a, field+"."+name, "contains ${ that begins no reference; there are ${env:%sNAME} and ${file:NAME}", SecretEnvPrefix)
		case strings.ContainsAny(name+string(values[name]), "\r\n\x00"):
			v.add(a, field+"."+name, "contains a line break")
		}
	}
}

// SecretName says whether a header or variable of this name usually holds a secret, so that its value must be a
// reference.
func SecretName(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "_", "-")
	for _, part := range []string{"authorization", "cookie", "token", "secret", "password", "passwd", "api-key", "apikey", "access-key", "private-key", "credential"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return strings.HasPrefix(name, "x-auth")
}

// looksSecret finds an authorization value under a name that does not tell, such as JSON in a variable.
func looksSecret(value string) bool {
	return regexp.MustCompile(`(?i)\b(bearer|basic)\s+[^\s$]{8,}`).MatchString(value)
}

func webURL(url string) bool {
	lower := strings.ToLower(url)
	return (strings.HasPrefix(lower, "http://") || strings.HasPrefix(lower, "https://")) && !hasUserInfo(url)
}

func hasUserInfo(url string) bool {
	_, rest, _ := strings.Cut(url, "://")
	if end := strings.IndexAny(rest, `/?#\`); end >= 0 {
		rest = rest[:end]
	}
	return strings.Contains(rest, "@")
}
