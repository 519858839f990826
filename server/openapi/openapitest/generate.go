package openapitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Operation is one of the document's.
type Operation struct {
	Method, Path string
}

// Operations are all of the document, in the same order each time.
func (c *Checker) Operations() (out []Operation) {
	for _, method := range slices.Sorted(maps.Keys(c.operations)) {
		for _, o := range c.operations[method] {
			out = append(out, Operation{strings.ToUpper(method), o.path})
		}
	}
	slices.SortFunc(out, func(a, b Operation) int { return strings.Compare(a.Path+" "+a.Method, b.Path+" "+b.Method) })
	return out
}

// Generator makes requests that the document describes, and such that are slightly wrong. The same seed makes the same ones. Not safe
// for concurrent use.
type Generator struct {
	c      *Checker
	random *rand.Rand
	// known are values by the name of a parameter or a property.
	known map[string][]string
}

// NewGenerator makes requests with the given values for parameters and properties of those names, such as ids that exist.
func (c *Checker) NewGenerator(seed uint64, known map[string][]string) *Generator {
	return &Generator{c, rand.New(rand.NewPCG(seed, 1)), known} //nolint:gosec // a repeatable sequence, not a secret
}

// Request makes one to http://localhost:8080.
func (g *Generator) Request(ctx context.Context, o Operation) (*http.Request, error) {
	op := pointer{"paths", o.Path, strings.ToLower(o.Method)}
	item, _ := g.c.at(op[:2])
	rest, _ := object(item)["x-rest"].(string)
	path, query, header := o.Path, url.Values{}, http.Header{}
	for _, list := range []pointer{op.to("parameters"), op[:2].to("parameters")} {
		all, _ := g.c.at(list)
		parameters, _ := all.([]any)
		for i := range parameters {
			p, at := g.c.at(list.to(fmt.Sprint(i)))
			name, _ := object(p)["name"].(string)
			value := plain(g.value(at.to("schema"), name, 0))
			switch object(p)["in"] {
			case "path":
				if value == "" || g.one(2) && len(g.known[name]) > 0 {
					value = g.pick(append(g.known[name], "x"))
				}
				escaped := url.PathEscape(value)
				if name == rest {
					escaped = strings.ReplaceAll(escaped, "%2F", "/")
				}
				path = strings.ReplaceAll(path, "{"+name+"}", escaped)
			case "query":
				if g.one(2) || object(p)["required"] == true {
					query.Add(name, value)
				}
			case "header":
				if g.one(3) {
					header.Set(name, strings.Map(visible, value))
				}
			}
		}
	}
	body, kind := g.body(op)
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	r, err := http.NewRequestWithContext(ctx, o.Method, "http://localhost:8080"+path+"?"+query.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	r.Header = header
	return r, nil
}

// visible keeps what may stand in a header.
func visible(r rune) rune {
	if r < ' ' || r == 0x7f {
		return -1
	}
	return r
}

func (g *Generator) body(op pointer) (body []byte, kind string) {
	described, at := g.c.at(op.to("requestBody"))
	for kind = range object(object(described)["content"]) { // there is one
		v := g.value(at.to("content", kind, "schema"), "", 0)
		if kind != "application/json" {
			form := url.Values{}
			for name, value := range object(v) {
				form.Set(name, plain(value))
			}
			return []byte(form.Encode()), kind
		}
		body, err := json.Marshal(v)
		if err != nil {
			return nil, kind
		}
		switch {
		case g.one(20):
			return body[:g.random.IntN(len(body)+1)], kind
		case g.one(20):
			return append(body, body...), kind
		}
		return body, kind
	}
	return nil, ""
}

const deepest = 6

// value makes one that fits a schema, or nearly.
func (g *Generator) value(at pointer, name string, depth int) any {
	found, at := g.c.at(at)
	schema := object(found)
	if g.one(12) {
		return g.odd()
	}
	if len(g.known[name]) > 0 && !g.one(8) {
		return g.pick(g.known[name])
	}
	switch options, _ := schema["enum"].([]any); {
	case schema["const"] != nil:
		return schema["const"]
	case len(options) > 0:
		return options[g.random.IntN(len(options))]
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if options, _ := schema[key].([]any); len(options) > 0 && schema["properties"] == nil {
			return g.value(at.to(key, fmt.Sprint(g.random.IntN(len(options)))), name, depth+1)
		}
	}
	kind := fmt.Sprint(schema["type"])
	if kinds, _ := schema["type"].([]any); len(kinds) > 0 {
		kind = fmt.Sprint(kinds[g.random.IntN(len(kinds))])
	}
	switch kind {
	case "object":
		return g.object(at, schema, depth)
	case "array":
		out := []any{}
		for range g.random.IntN(3) {
			if schema["items"] != nil && depth < deepest {
				out = append(out, g.value(at.to("items"), "", depth+1))
			}
		}
		return out
	case "integer", "number":
		return []any{0, 1, 2, 1000, 1001, -1, 1.5, 9223372036854775807.0}[g.random.IntN(8)]
	case "boolean":
		return g.one(2)
	case "null":
		return nil
	case "string":
		return g.text()
	}
	return g.odd()
}

func (g *Generator) object(at pointer, schema map[string]any, depth int) map[string]any {
	out := map[string]any{}
	required, _ := schema["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(object(schema["properties"]))) {
		need := slices.Contains(required, any(name))
		if depth < deepest && (need && !g.one(20) || !need && g.one(2)) {
			out[name] = g.value(at.to("properties", name), name, depth+1)
		}
	}
	if schema["additionalProperties"] == true || g.one(10) {
		out[g.text()] = g.odd()
	}
	return out
}

// odd values have made programs stumble.
func (g *Generator) odd() any {
	deep := any("end")
	for range 60 {
		deep = []any{deep}
	}
	values := []any{nil, true, 0, -1, 1e308, "", []any{}, map[string]any{}, map[string]any{"": nil}, map[string]any{"toString": 1, "__proto__": "x"}, deep, g.text()}
	return values[g.random.IntN(len(values))]
}

func (g *Generator) text() string {
	texts := []string{
		"plain", "two words", "2026-03-01T12:00:00Z", "0", "-1", "true", "null", "../..", ".", "a/b", "%00", "\x00", "\r\nX: y", "\u202eabc", "\ud7ff\ufffd", "👩‍👩‍👧",
		"' OR 1=1 --", "%", "_", `\`, "<script>", "{{.}}", "app:x", "user:x", "temp:x", "latest", strings.Repeat("x", 65), strings.Repeat("é", 3000), "http://[::1", "57.3~c0ffee~e-1",
	}
	return g.pick(texts)
}

func (g *Generator) one(in int) bool { return g.random.IntN(in) == 0 }

func (g *Generator) pick(from []string) string { return from[g.random.IntN(len(from))] }

// plain is a value as it stands in a path, a query or a form.
func plain(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	body, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(body)
}
