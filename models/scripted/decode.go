package scripted

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// decode reads YAML, and so JSON. It walks the nodes by hand: a script is written by people, and the library's errors
// name neither the field nor what may stand there.
func decode(name string, source []byte) (Script, error) {
	c := &checker{file: name, lines: map[string]int{}}
	out := Script{Name: name}
	var document yaml.Node
	if err := yaml.Unmarshal(source, &document); err != nil {
		return Script{}, fmt.Errorf("%s: is not YAML or JSON: %w", name, err)
	}
	if len(document.Content) == 0 {
		c.fault("", "the file is empty", "start with agents:")
		return Script{}, errors.Join(c.faults...)
	}
	c.object("", document.Content[0], fields{
		"agents": func(at string, n *yaml.Node) {
			c.list(at, n, func(at string, n *yaml.Node) { out.Agents = append(out.Agents, c.readAgent(at, n)) })
		},
	})
	if len(c.faults) == 0 { // a field that could not be read would be reported as missing too
		c.script(out)
	}
	if len(c.faults) > 0 {
		return Script{}, errors.Join(c.faults...)
	}
	return out, nil
}

func (c *checker) readAgent(at string, n *yaml.Node) (out Agent) {
	c.object(at, n, fields{
		"agent": c.text(&out.Agent),
		"steps": func(at string, n *yaml.Node) {
			c.list(at, n, func(at string, n *yaml.Node) { out.Steps = append(out.Steps, c.readStep(at, n)) })
		},
	})
	return out
}

func (c *checker) readStep(at string, n *yaml.Node) (out Step) {
	c.object(at, n, fields{
		"id":      c.text(&out.ID),
		"text":    c.text(&out.Text),
		"thought": c.text(&out.Thought),
		"delay":   c.duration(&out.Delay),
		"pace":    c.duration(&out.Pace),
		"when": func(at string, n *yaml.Node) {
			out.When = &When{}
			c.object(at, n, fields{
				"turn":        c.number(func(v int32) { out.When.Turn = int(v) }),
				"last_tool":   c.text(&out.When.LastTool),
				"contains":    c.text(&out.When.Contains),
				"instruction": c.text(&out.When.Instruction),
			})
		},
		"calls": func(at string, n *yaml.Node) {
			c.list(at, n, func(at string, n *yaml.Node) { out.Calls = append(out.Calls, c.readCall(at, n)) })
		},
		"usage": func(at string, n *yaml.Node) {
			out.Usage = &Usage{}
			c.object(at, n, fields{
				"prompt":   c.number(func(v int32) { out.Usage.Prompt = v }),
				"output":   c.number(func(v int32) { out.Usage.Output = v }),
				"thoughts": c.number(func(v int32) { out.Usage.Thoughts = v }),
			})
		},
		"error": func(at string, n *yaml.Node) {
			out.Error = &Failure{}
			c.object(at, n, fields{
				"status":      c.number(func(v int32) { out.Error.Status = int(v) }),
				"retry_after": c.duration(&out.Error.RetryAfter),
			})
		},
	})
	return out
}

func (c *checker) readCall(at string, n *yaml.Node) (out Call) {
	c.object(at, n, fields{
		"id":   c.text(&out.ID),
		"name": c.text(&out.Name),
		"args": func(at string, n *yaml.Node) {
			// Through JSON, so that numbers and maps are of the types that a decoded request would have.
			var value any
			err := n.Decode(&value)
			encoded, jsonErr := json.Marshal(value)
			if err != nil || jsonErr != nil || json.Unmarshal(encoded, &out.Args) != nil {
				c.fault(at, "is no object of JSON values", "write field: value, or leave it out")
			}
		},
	})
	return out
}

// fields are the readers of an object's fields, by name.
type fields map[string]func(at string, n *yaml.Node)

func (c *checker) object(at string, n *yaml.Node, known fields) {
	n = resolved(n)
	if _, ok := c.lines[at]; !ok {
		c.lines[at] = n.Line
	}
	allowed := "fields here: " + strings.Join(slices.Sorted(maps.Keys(known)), ", ")
	if n.Kind != yaml.MappingNode {
		c.fault(at, "is not an object", allowed)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		field := strings.TrimPrefix(at+"."+name, ".")
		c.lines[field] = n.Content[i].Line
		read, ok := known[name]
		switch {
		case !ok:
			c.fault(field, "is not a field", allowed)
		case seen[name]:
			c.fault(field, "stands twice", "keep one of them")
		default:
			read(field, resolved(n.Content[i+1]))
		}
		seen[name] = true
	}
}

func (c *checker) list(at string, n *yaml.Node, read func(at string, n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		c.fault(at, "is not a list", "start each entry with a dash")
		return
	}
	for i, item := range n.Content {
		field := fmt.Sprintf("%s[%d]", at, i)
		c.lines[field] = item.Line
		read(field, resolved(item))
	}
}

func (c *checker) text(into *string) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
			c.fault(at, "is not a text", `write it on one line, in quotes, or after "|"`)
			return
		}
		*into = n.Value
	}
}

func (c *checker) number(set func(int32)) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		v, err := strconv.ParseInt(n.Value, 10, 32)
		if n.Kind != yaml.ScalarNode || err != nil || v > math.MaxInt32 {
			c.fault(at, "is not a whole number", "write digits only")
			return
		}
		set(int32(v))
	}
}

func (c *checker) duration(into *time.Duration) func(string, *yaml.Node) {
	return func(at string, n *yaml.Node) {
		v, err := time.ParseDuration(n.Value)
		if n.Kind != yaml.ScalarNode || err != nil {
			c.fault(at, "is not a duration", `write a number with its unit, such as "200ms" or "7s"`)
			return
		}
		*into = v
	}
}

func resolved(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode && n.Alias != nil {
		n = n.Alias
	}
	return n
}
