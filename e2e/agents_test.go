package e2e_test

import (
	"fmt"
	"strings"
)

// single is an app "assistant" with one LlmAgent that has the MCP server's tools, answering by script: the steps of the
// agent "assistant".
func single(steps string) options {
	return options{
		open:   true,
		agents: map[string]string{"assistant/root_agent.yaml": assistant("")},
		script: "agents:\n  - agent: assistant\n    steps:\n" + indent(steps, "      "),
	}
}

func assistant(more string) string {
	return `name: assistant
model: ${var:MODEL}
instruction: Help with tickets.
` + more + `tools:
  - name: McpToolset
    args:
      streamable_http_connection_params:
        url: ${var:MCP_URL}
`
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by) + "\n"
}

// call is a step that calls tools without arguments or with the given ones (YAML flow mappings).
func call(tools ...string) string {
	var b strings.Builder
	b.WriteString("- calls:\n")
	for _, tool := range tools {
		name, args, _ := strings.Cut(tool, " ")
		if args == "" {
			args = "{}"
		}
		fmt.Fprintf(&b, "    - {name: %s, args: %s}\n", name, args)
	}
	return b.String()
}

func text(s string) string { return fmt.Sprintf("- text: %q\n", s) }
