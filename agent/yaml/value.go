package yaml

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// value is a node with its file and its path, so that it can say what is wrong with itself.
type value struct {
	doc  *document
	node *yaml.Node
	path string
}

func (v value) fail(format string, args ...any) {
	v.doc.bad = append(v.doc.bad, v.path)
	v.doc.problems.add(&Error{File: v.doc.name, Line: v.node.Line, Field: v.path, Problem: fmt.Sprintf(format, args...)})
}

// place makes the errors of Validate about field point here.
func (v value) place(field string) { v.doc.places[field] = v }

func (v value) null() bool { return v.node.ShortTag() == "!!null" }

// pairs lists the values of a mapping; nothing for other kinds.
func (v value) pairs() []value {
	if v.node.Kind != yaml.MappingNode {
		return nil
	}
	out := make([]value, 0, len(v.node.Content)/2)
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		out = append(out, value{doc: v.doc, node: v.node.Content[i+1], path: join(v.path, v.node.Content[i].Value)})
	}
	return out
}

// items lists the values of a sequence; nothing for other kinds.
func (v value) items() []value {
	if v.node.Kind != yaml.SequenceNode {
		return nil
	}
	out := make([]value, 0, len(v.node.Content))
	for i, node := range v.node.Content {
		out = append(out, value{doc: v.doc, node: node, path: fmt.Sprintf("%s[%d]", v.path, i)})
	}
	return out
}

func (v value) isList() bool { return v.node.Kind == yaml.SequenceNode }

// list is items with a complaint about other kinds.
func (v value) list() []value {
	if !v.isList() {
		v.fail("%s must be a list (lines that begin with a dash)", v.shown())
	}
	return v.items()
}

func (v value) texts() []string {
	items := v.list()
	out := make([]string, 0, len(items))
	for _, item := range items {
		out = append(out, item.text())
	}
	return out
}

// text is a string; numbers and the like must be quoted.
func (v value) text() string {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!str" {
		v.fail("%s must be text; quote it", v.shown())
		return ""
	}
	return v.node.Value
}

// secret is text in which secret references may stand. It never repeats the value.
func (v value) secret() string {
	v.hide()
	v.doc.secrets[v.node] = true
	return v.text()
}

func (v value) boolean() bool {
	var out bool
	if v.node.ShortTag() != "!!bool" || v.node.Decode(&out) != nil {
		v.fail("%s must be true or false", v.shown())
	}
	return out
}

func (v value) integer() int {
	var out int32
	if v.node.ShortTag() != "!!int" || v.node.Decode(&out) != nil {
		v.fail("%s must be a whole number", v.shown())
	}
	return int(out)
}

func (v value) number() float64 {
	var out float64
	tag := v.node.ShortTag()
	if tag != "!!int" && tag != "!!float" || v.node.Decode(&out) != nil || math.IsNaN(out) || math.IsInf(out, 0) {
		v.fail("%s must be a number", v.shown())
		return 0
	}
	return out
}

// seconds is ADK's way to write a duration.
func (v value) seconds() time.Duration {
	before := len(v.doc.problems.errs)
	out := v.number()
	if len(v.doc.problems.errs) == before && (out <= 0 || out > (24*time.Hour).Seconds()) {
		v.fail("%s must be seconds, more than 0 and at most 86400", v.shown())
		return 0
	}
	return time.Duration(out * float64(time.Second))
}

// duration is Go's way to write one; without says what there is none of when it is left out.
func (v value) duration(without string) time.Duration {
	out, err := time.ParseDuration(v.node.Value)
	if err != nil || out <= 0 {
		v.fail("%s must be a duration such as 72h or 30m; leave it out for no %s", v.shown(), without)
		return 0
	}
	return out
}

// expanded is text in which ${var:NAME} is replaced. Text without variables stays as it is.
func (v value) expanded(vars map[string]string) string {
	v.doc.vars[v.node] = true
	var out strings.Builder
	rest := v.text()
	for {
		before, after, found := strings.Cut(rest, "${var:")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, tail, closed := strings.Cut(after, "}")
		text, known := vars[name]
		switch {
		case !closed:
			v.fail("${var: is not closed; write ${var:NAME}")
			return ""
		case !known:
			v.fail("there is no variable %q; %s", name, listed(keysOf(vars)))
			return ""
		}
		out.WriteString(text)
		rest = tail
	}
}

// hide keeps errors from repeating the value or what is in it.
func (v value) hide() {
	v.doc.hidden[v.node] = true
	for _, child := range append(v.pairs(), v.items()...) {
		child.hide()
	}
}

// shown is the value for an error, cut short.
func (v value) shown() string {
	const longest = 40
	switch {
	case v.node.Kind == yaml.MappingNode:
		return "a mapping"
	case v.node.Kind == yaml.SequenceNode:
		return "a list"
	case v.null():
		return "nothing"
	case v.doc.hidden[v.node]:
		return "the value"
	}
	text := []rune(v.node.Value)
	if len(text) > longest {
		text = append(text[:longest], '…')
	}
	return fmt.Sprintf("%q", string(text))
}
