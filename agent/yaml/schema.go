package yaml

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema reads output_schema or input_schema: the name of a registered one, as ADK names a class, or one that is written
// out.
func (l *loader) schema(v value) json.RawMessage {
	o := v.object(nil)
	if o == nil {
		return nil
	}
	o.only([]string{"name", "json_schema"}, map[string]string{"args": "a schema takes none"})
	name, named := o.get("name")
	written, inline := o.get("json_schema")
	switch {
	case named == inline:
		v.fail("needs a name of a registered schema, or json_schema; write one of the two")
	case named:
		text := name.text()
		if s, ok := l.opts.Schemas[text]; ok {
			return s
		}
		name.fail("no schema %s is registered; %s", name.shown(), listed(keysOf(l.opts.Schemas)))
	default:
		return inlineSchema(written)
	}
	return nil
}

func inlineSchema(v value) json.RawMessage {
	if v.object(nil) == nil {
		return nil
	}
	body, err := json.Marshal(plain(v))
	if err != nil {
		v.fail("cannot be written as JSON; remove what is unusual in it")
		return nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(body, &s); err != nil {
		v.fail("is not a JSON Schema; mend the type of one of its keywords")
		return nil
	}
	if _, err := s.Resolve(nil); err != nil {
		v.fail("is not a JSON Schema that can be used; each $ref must name a part of it, such as #/$defs/city, and each pattern be a regular expression")
		return nil
	}
	return body
}
