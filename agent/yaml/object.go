package yaml

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// object is a mapping with its keys looked up.
type object struct {
	value
	fields map[string]value
	keys   map[string]*yaml.Node
	order  []string
}

// object reads a mapping, or complains and returns nil. A normal form of keys (snake) makes both of ADK's spellings
// one; nil leaves them.
func (v value) object(normal func(string) string) *object {
	if v.node.Kind != yaml.MappingNode {
		v.fail("%s must be a mapping (keys with values)", v.shown())
		return nil
	}
	o := &object{value: v, fields: map[string]value{}, keys: map[string]*yaml.Node{}}
	for i, field := range v.pairs() {
		node := v.node.Content[2*i]
		key := node.Value
		if normal != nil {
			key = normal(key)
		}
		if _, twice := o.fields[key]; twice {
			value{doc: v.doc, node: node, path: field.path}.fail("the key is there twice, in two spellings; remove one")
			continue
		}
		o.fields[key], o.keys[key] = field, node
		o.order = append(o.order, key)
	}
	return o
}

// get returns a field that is there and not null.
func (o *object) get(key string) (value, bool) {
	v, ok := o.fields[key]
	return v, ok && !v.null()
}

// missing stands for a field that is not there, so that an error can name it.
func (o *object) missing(key string) value {
	return value{doc: o.doc, node: o.node, path: join(o.path, key)}
}

// flag returns a field's truth; one that is not there is false.
func (o *object) flag(key string) bool {
	v, ok := o.get(key)
	return ok && v.boolean()
}

func (o *object) has(key string) bool {
	_, ok := o.get(key)
	return ok
}

// text returns a field's text, or nothing.
func (o *object) text(key string) string {
	if v, ok := o.get(key); ok {
		return v.text()
	}
	return ""
}

func (o *object) texts(key string) []string {
	if v, ok := o.get(key); ok {
		return v.texts()
	}
	return nil
}

// only refuses keys other than known. Those in later are ADK's, with a mend or nothing.
func (o *object) only(known []string, later map[string]string) {
	for _, key := range o.order {
		if slices.Contains(known, key) {
			continue
		}
		at := value{doc: o.doc, node: o.keys[key], path: o.fields[key].path}
		mend, adk := later[key]
		switch {
		case adk && mend == "":
			at.fail("ADK knows this key, Tarry does not yet; remove it")
		case adk:
			at.fail("ADK knows this key, Tarry does not yet; %s", mend)
		default:
			at.fail("unknown key; %s", instead(key, known))
		}
	}
}

func keysOf[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
