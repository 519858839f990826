package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v4"

	"tarry/agent"
)

// maxNesting bounds the depth inside one file; ADK's own files need six.
const maxNesting = 32

// document is one file while it is read. Places and bad serve to give the errors of [agent.Definition.Validate] a line.
type document struct {
	name     string
	problems *problems
	places   map[string]value    // by the field path that Validate uses
	bad      []string            // such paths, and paths in the file, that an error names already
	secrets  map[*yaml.Node]bool // may hold secret references
	hidden   map[*yaml.Node]bool // may hold a secret: errors do not repeat it
	vars     map[*yaml.Node]bool // may hold variables
}

// parse reads the only mapping of a file, or reports why it cannot and returns false.
func parse(name string, data []byte, p *problems) (value, bool) {
	d := &document{
		name: name, problems: p,
		places: map[string]value{}, secrets: map[*yaml.Node]bool{},
		hidden: map[*yaml.Node]bool{}, vars: map[*yaml.Node]bool{},
	}
	root := d.load(data)
	if root == nil {
		return value{}, false
	}
	v := value{doc: d, node: root}
	if root.Kind != yaml.MappingNode {
		v.fail("the file must hold an agent: keys such as name and instruction, each with a value")
		return value{}, false
	}
	return v, d.sound(v, 0)
}

func (d *document) load(data []byte) *yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		d.refuse(0, "not YAML: "+err.Error())
		return nil
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		d.syntax(data, err)
		return nil
	}
	if len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null" {
		d.refuse(0, "the file is empty; an agent needs a name and an instruction")
		return nil
	}
	var second yaml.Node
	switch err := loader.Load(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		d.syntax(data, err)
		return nil
	default:
		d.refuse(second.Line, "a second document begins (---); put each agent into a file of its own")
		return nil
	}
	return doc.Content[0]
}

func (d *document) refuse(line int, problem string) {
	d.problems.add(&Error{File: d.name, Line: line, Problem: problem})
}

// syntax reports what the YAML parser found, without the parts of its messages that repeat a value.
func (d *document) syntax(data []byte, err error) {
	if errors.Is(err, io.EOF) {
		d.refuse(0, "the file is empty; an agent needs a name and an instruction")
		return
	}
	line, message := 0, "not YAML"
	var load *yaml.LoadError
	if errors.As(err, &load) {
		line, message = load.Mark.Line, "not YAML: "+load.Message
	}
	switch {
	case strings.Contains(message, "anchor"):
		message = "an alias (*name) names an anchor that is not there; quote the text, or write the value out"
	case strings.Contains(message, "tag"):
		message = "a tag (!name) is not understood; quote the text"
	case tabIndents(data, line):
		message = "a tab indents this line; use spaces"
	}
	d.refuse(line, message)
}

func tabIndents(data []byte, line int) bool {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return false
	}
	text := lines[line-1]
	return bytes.ContainsRune(text[:len(text)-len(bytes.TrimLeft(text, " \t"))], '\t')
}

// sound reports what this format does not take from YAML: aliases, merge keys, tags, keys that are no text or stand
// twice.
func (d *document) sound(v value, depth int) bool {
	ok := true
	if depth > maxNesting {
		v.fail("nested deeper than %d", maxNesting)
		return false
	}
	switch v.node.Kind {
	case yaml.AliasNode:
		v.fail("aliases (*name) are not read; write the value out")
		return false
	case yaml.MappingNode:
		ok = d.keys(v)
		for _, child := range v.pairs() {
			ok = d.sound(child, depth+1) && ok
		}
	case yaml.SequenceNode:
		for _, child := range v.items() {
			ok = d.sound(child, depth+1) && ok
		}
	default:
	}
	switch v.node.ShortTag() {
	case "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp", "!!map", "!!seq":
	default:
		v.fail("tags (!name) are not read; quote the text if it begins with an exclamation mark")
		ok = false
	}
	return ok
}

func (d *document) keys(v value) bool {
	ok := true
	first := map[string]int{}
	for i := 0; i < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		at := value{doc: d, node: key, path: join(v.path, key.Value)}
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			at.fail("merge keys (<<) are not read; write the values out")
			ok = false
		case key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str":
			value{doc: d, node: key, path: v.path}.fail("a key must be text; quote it")
			ok = false
		case first[key.Value] > 0:
			at.fail("the key is there twice, first in line %d; remove one", first[key.Value])
			ok = false
		default:
			first[key.Value] = key.Line
		}
	}
	return ok
}

// references reports secret references and variables outside the places that were read as such.
func (d *document) references(v value) {
	for _, child := range v.pairs() {
		d.references(child)
	}
	for _, child := range v.items() {
		d.references(child)
	}
	text := v.node.Value
	switch {
	case v.node.Kind != yaml.ScalarNode:
	case !d.secrets[v.node] && (strings.Contains(text, "${env:") || strings.Contains(text, "${file:")):
		v.fail("secret references may stand in client_secret, api_key, credentials, headers and env only; take it out")
	case !d.vars[v.node] && strings.Contains(text, "${var:"):
		v.fail("${var:…} may stand in url and model only; write the value out")
	}
}

// resolve turns an error of the finished definition into one with file and line. It returns nil for what follows from
// an error that is reported already.
func (d *document) resolve(e *agent.FieldError, line int) *Error {
	field, at := e.Field, e.Field
	for at != "" {
		for _, bad := range d.bad {
			if at == bad {
				return nil
			}
		}
		if v, ok := d.places[at]; ok {
			line, field = v.node.Line, v.path+e.Field[len(at):]
			for _, bad := range d.bad {
				if v.path == bad {
					return nil
				}
			}
			break
		}
		at = at[:max(0, strings.LastIndexAny(at, ".["))]
	}
	return &Error{File: d.name, Line: line, Field: field, Problem: e.Problem}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return fmt.Sprintf("%s.%s", path, key)
}
