//go:build interop

package interop_test

import (
	"fmt"
	"strings"
)

// toolset is an MCP server as an agent's file names it.
type toolset struct {
	url   string
	how   string // the connection's key and value, if it is not streamable HTTP at url
	tools []string
	extra string // more lines of args, indented by six
}

// single is an app of one agent with the name "agent" that follows a script.
func single(steps string, sets ...toolset) options {
	var b strings.Builder
	b.WriteString("name: agent\nmodel: ${var:MODEL}\ninstruction: Help.\ntools:\n")
	for _, s := range sets {
		if s.how == "" {
			s.how = "streamable_http_connection_params: {url: '" + s.url + "', sse_read_timeout: 3}"
		}
		fmt.Fprintf(&b, "  - name: McpToolset\n    args:\n      %s\n", s.how)
		fmt.Fprintf(&b, "      tool_filter: [%s]\n%s", strings.Join(s.tools, ", "), s.extra)
	}
	return options{
		agents: map[string]string{"agent/root_agent.yaml": b.String()},
		script: "agents:\n  - agent: agent\n    steps:\n" + steps,
	}
}

// calls is a step of a script with one call for each text, such as "echo {message: hello}".
func calls(texts ...string) string {
	var b strings.Builder
	b.WriteString("      - calls:\n")
	for _, t := range texts {
		name, args, _ := strings.Cut(t, " ")
		fmt.Fprintf(&b, "          - name: %s\n            args: %s\n", name, args)
	}
	return b.String()
}

// says is a step of a script that ends a turn.
func says(text string) string { return fmt.Sprintf("      - text: %q\n", text) }

const (
	// streamable is the transport of servers of today.
	streamable = "streamableHttp"

	echo = "echo {message: hello}"
	// long outlives an access token of shortLife, and a server's silence for as long as is allowed; it sends progress.
	long = "trigger-long-running-operation {duration: 6, steps: 6}"
)
