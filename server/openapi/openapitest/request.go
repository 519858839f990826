package openapitest

import (
	"bytes"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// request checks the parameters and the body of a request that was served.
func (f *findings) request(op pointer) {
	query, known := f.x.URL.Query(), map[string]bool{}
	for _, list := range []pointer{op.to("parameters"), op[:len(op)-1].to("parameters")} {
		all, _ := f.c.at(list)
		parameters, _ := all.([]any)
		for i := range parameters {
			at := f.element(list, parameters[i], i)
			p, _ := f.c.at(at)
			name, _ := object(p)["name"].(string)
			required := object(p)["required"] == true
			var values []string
			switch object(p)["in"] {
			case "query":
				known[name] = true
				values = query[name]
			case "header":
				values = f.x.Sent.Values(name)
			default:
				continue // the route was found by it
			}
			if len(values) == 0 && required {
				f.say("it was served without the parameter %s, which the document wants", name)
			}
			for _, value := range values {
				if value != "" || required {
					f.text("parameter "+name, at.to("schema"), value)
				}
			}
		}
	}
	for name := range query {
		if !known[name] && !f.x.Loose && !f.page(op) {
			f.say("the query parameter %s is not described", name)
		}
	}
	f.body(op)
}

// page says whether a route is for browsers: links to it come from anywhere, and may carry anything.
func (f *findings) page(op pointer) bool {
	tags, _ := f.c.at(op.to("tags"))
	list, _ := tags.([]any)
	return slices.Contains(list, any("Pages"))
}

// element is the place of a parameter: that which it refers to, or in the list.
func (f *findings) element(list pointer, p any, i int) pointer {
	if ref, ok := object(p)["$ref"].(string); ok {
		return strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	}
	return list.to(strconv.Itoa(i))
}

func (f *findings) body(op pointer) {
	described, at := f.c.at(op.to("requestBody"))
	if described == nil || !f.x.Read {
		return
	}
	if len(bytes.TrimSpace(f.x.Request)) == 0 {
		if object(described)["required"] == true {
			f.say("it was served without a body, which the document wants")
		}
		return
	}
	content := object(object(described)["content"])
	kind, _, err := mime.ParseMediaType(f.x.Sent.Get("Content-Type"))
	if err != nil { // what sign-in asks for is not asked of a handler alone
		kind = "application/json"
	}
	media := object(content[kind])
	if media == nil {
		f.say("a body of the type %q was served, which is not described", kind)
		return
	}
	at = at.to("content", kind)
	switch kind {
	case "application/x-www-form-urlencoded":
		form, err := url.ParseQuery(string(f.x.Request))
		if err != nil {
			f.say("form: %v", err)
			return
		}
		fields := map[string]any{}
		for name, values := range form {
			fields[name] = values[0]
		}
		f.valid("form", open, at.to("schema"), encoded(fields))
	case "application/json":
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.x.Request))
		if err != nil {
			f.say("request: no JSON, but it was served with %d", f.x.Status)
			return
		}
		if media["x-snake-case"] == true {
			v = camelCase(v)
		}
		f.valid("request", open, at.to("schema"), v)
	}
}

// camelCase spells the names of ADK's own fields as the document does; what is a value of somebody's is left alone.
func camelCase(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = camelCase(v[i])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, value := range v {
			name := camel(key)
			switch name {
			case "state", "stateDelta", "response", "args", "customMetadata":
			default:
				value = camelCase(value)
			}
			out[name] = value
		}
		return out
	}
	return v
}

func camel(name string) string {
	var b strings.Builder
	up := false
	for i, r := range strings.TrimRight(name, "_") {
		switch {
		case r == '_' && i > 0:
			up = true
		case up:
			b.WriteRune(unicode.ToUpper(r))
			up = false
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
