package yaml

import (
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"tarry/agent"
)

// longestToolset is what the agent package allows.
const longestToolset = 40

// nameToolsets gives each toolset a name of its own, from its server's host or command. Names are in tree order, so
// that the same files give the same names.
func nameToolsets(def *agent.Definition) {
	taken := map[string]bool{}
	for a := range def.All() {
		for _, tool := range a.Tools {
			if tool.MCP == nil {
				continue
			}
			base := toolsetName(tool.MCP)
			name := base
			for n := 2; taken[name]; n++ {
				suffix := fmt.Sprintf("_%d", n)
				name = strings.TrimRight(base[:min(len(base), longestToolset-len(suffix))], "_") + suffix
			}
			taken[name] = true
			tool.MCP.Name = name
		}
	}
}

func toolsetName(m *agent.MCPToolset) string {
	const unnamed = "mcp"
	if m.Transport == agent.TransportStdio {
		return identifier(strings.ToLower(path.Base(strings.ReplaceAll(m.Command, `\`, "/"))), unnamed)
	}
	u, err := url.Parse(m.URL)
	if err != nil {
		return unnamed
	}
	host := strings.ToLower(u.Hostname())
	if _, err := netip.ParseAddr(host); err == nil || host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return unnamed
	}
	return identifier(host, unnamed)
}

// identifier turns text into letters, digits and underscores, beginning with a letter.
func identifier(text, unnamed string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			b.WriteRune(r)
		default:
			b.WriteByte('_')
		}
	}
	out := strings.Trim(b.String(), "_")
	if out == "" {
		return unnamed
	}
	if out[0] >= '0' && out[0] <= '9' {
		out = unnamed + "_" + out
	}
	return strings.TrimRight(out[:min(len(out), longestToolset)], "_")
}
