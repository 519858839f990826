package adk

import (
	"fmt"
	"slices"
	"strings"

	"tarry/agent"
)

// drawing is a tree of agents in Graphviz's language. Nodes are called as the agents and tools are, which ADK's web UI relies on.
type drawing struct {
	out   strings.Builder
	pairs [][2]string
	drawn map[string]bool
	edges map[string]bool
	theme theme
}

// theme is a set of colours.
type theme struct{ back, line, text, fill, mark string }

func themeOf(dark bool) theme {
	if dark {
		return theme{back: "#202124", line: "#9aa0a6", text: "#e8eaed", fill: "#303134", mark: "#2e7d32"}
	}
	return theme{back: "#ffffff", line: "#5f6368", text: "#202124", fill: "#f1f3f4", mark: "#a5d6a7"}
}

// dot draws an agent with all below it. pairs are drawn as what speaks to what at the moment; one whose tool the definition does
// not name gets a node for it.
func dot(a *agent.Agent, dark bool, pairs ...[2]string) string {
	d := &drawing{pairs: pairs, drawn: map[string]bool{}, edges: map[string]bool{}, theme: themeOf(dark)}
	fmt.Fprintf(&d.out, "digraph {\n  rankdir=LR bgcolor=%s\n", quote(d.theme.back))
	fmt.Fprintf(&d.out, "  node [fontname=Arial fontsize=12 style=\"filled,rounded\" color=%s fontcolor=%s fillcolor=%s]\n",
		quote(d.theme.line), quote(d.theme.text), quote(d.theme.fill))
	fmt.Fprintf(&d.out, "  edge [color=%s arrowsize=0.7]\n", quote(d.theme.line))
	d.agent(a)
	for _, pair := range pairs {
		from, to := pair[0], pair[1]
		switch {
		case d.drawn[from] && to != "" && !d.drawn[to]:
			d.node(to, to, "box")
			d.edge(from, to)
		case d.drawn[to] && from != "" && !d.drawn[from]:
			d.node(from, from, "box")
			d.edge(to, from)
		}
	}
	d.out.WriteString("}\n")
	return d.out.String()
}

func (d *drawing) agent(a *agent.Agent) {
	if a == nil || d.drawn[a.Name] {
		return
	}
	label := a.Name
	if a.Kind != agent.KindLLM {
		label += "\n" + string(a.Kind)
	}
	d.node(a.Name, label, "ellipse")
	for _, t := range toolsOf(a) {
		switch {
		case t.agent != nil:
			d.agent(t.agent)
		case t.set:
			d.node(t.name, t.name, "component")
		default:
			d.node(t.name, t.name, "box")
		}
		d.edge(a.Name, t.name)
	}
	for i, child := range a.SubAgents {
		d.agent(child)
		switch {
		case i > 0 && (a.Kind == agent.KindSequential || a.Kind == agent.KindLoop):
			d.edge(a.SubAgents[i-1].Name, child.Name)
		default:
			d.edge(a.Name, child.Name)
		}
	}
	if n := len(a.SubAgents); n > 0 && a.Kind == agent.KindLoop {
		d.edge(a.SubAgents[n-1].Name, a.SubAgents[0].Name)
	}
}

func (d *drawing) node(name, label, shape string) {
	if d.drawn[name] {
		return
	}
	d.drawn[name] = true
	marked := ""
	if slices.ContainsFunc(d.pairs, func(p [2]string) bool { return p[0] == name || p[1] == name }) {
		marked = " penwidth=2 fillcolor=" + quote(d.theme.mark)
	}
	fmt.Fprintf(&d.out, "  %s [label=%s shape=%s%s]\n", quote(name), quote(label), shape, marked)
}

func (d *drawing) edge(from, to string) {
	key := from + "\n" + to
	if d.edges[key] {
		return
	}
	d.edges[key] = true
	marked := ""
	switch {
	case slices.Contains(d.pairs, [2]string{from, to}):
		marked = " [penwidth=2 color=" + quote(d.theme.mark) + "]"
	case slices.Contains(d.pairs, [2]string{to, from}):
		marked = " [penwidth=2 color=" + quote(d.theme.mark) + " dir=back]"
	}
	fmt.Fprintf(&d.out, "  %s -> %s%s\n", quote(from), quote(to), marked)
}

// quote writes a string of Graphviz's: what a name holds stays a name.
func quote(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
