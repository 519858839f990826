package openapitest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"tarry/server/openapi"
)

// Exchange is a request and its answer.
type Exchange struct {
	Method string
	URL    *url.URL
	Sent   http.Header
	// Request is the body that was sent; Read says that it was read to its end, without which it is not checked.
	Request []byte
	Read    bool
	// Loose leaves out whether the query has parameters that are not described, which handlers ignore.
	Loose bool
	// AnswerOnly leaves out the request.
	AnswerOnly bool

	Status int
	Got    http.Header
	Answer []byte
}

// Checker knows the document. Safe for concurrent use.
type Checker struct {
	doc        map[string]any
	operations map[string][]operation // by method

	mu       sync.Mutex
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

// The document is compiled twice: as clients read it, and with what answers may not have.
const (
	open   = "tarry:open"
	closed = "tarry:closed"
)

//nolint:gochecknoglobals // compiled once for all tests of a package
var shared = sync.OnceValues(New)

func load(tb testing.TB) *Checker {
	tb.Helper()
	c, err := shared()
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// New loads the document.
func New() (*Checker, error) {
	body, err := openapi.Document()
	if err != nil {
		return nil, fmt.Errorf("load document: %w", err)
	}
	c := &Checker{operations: map[string][]operation{}, compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	if err := json.Unmarshal(body, &c.doc); err != nil {
		return nil, fmt.Errorf("decode document: %w", err)
	}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	for name, change := range map[string]func(any) any{open: func(v any) any { return v }, closed: shut} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(body)))
		if err == nil {
			err = c.compiler.AddResource(name, change(doc))
		}
		if err != nil {
			return nil, fmt.Errorf("load document: %w", err)
		}
	}
	for place, item := range object(c.doc["paths"]) {
		rest, _ := object(item)["x-rest"].(string)
		for method := range object(item) {
			if method != "parameters" && !strings.HasPrefix(method, "x-") {
				c.operations[method] = append(c.operations[method], operationOf(place, method, rest))
			}
		}
	}
	return c, nil
}

// Pattern is a path of the document as [http.ServeMux] has it. Where that is another, it stands in x-route: for what comes after a
// slash OpenAPI has no word.
func Pattern(doc map[string]any, path, method string) string {
	item := object(object(doc["paths"])[path])
	for _, of := range []map[string]any{object(item[method]), item} {
		if route, ok := of["x-route"].(string); ok {
			return route
		}
	}
	return path
}

// operation is one of the document's. A parameter that is named by x-rest may have slashes.
type operation struct {
	path, method string
	fits         *regexp.Regexp
}

func operationOf(path, method, rest string) operation {
	pattern := regexp.MustCompile(`\\\{(\w+)\\\}`).ReplaceAllStringFunc(regexp.QuoteMeta(path), func(parameter string) string {
		if parameter == `\{`+rest+`\}` {
			return ".+"
		}
		return "[^/]+"
	})
	return operation{path, method, regexp.MustCompile("^" + pattern + "$")}
}

// find returns the operation that serves a request: of several the one with the most words.
func (c *Checker) find(method, path string) (best operation, ok bool) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	words := func(o operation) int { return strings.Count(o.path, "/")*100 - strings.Count(o.path, "{") }
	for _, o := range c.operations[strings.ToLower(method)] {
		if o.fits.MatchString(path) && (!ok || words(o) > words(best)) {
			best, ok = o, true
		}
	}
	return best, ok
}

// Problems says what of x is not as the document has it; routes that it does not have are nobody's here, nor are paths that
// [http.ServeMux] sends elsewhere because they are not clean.
func (c *Checker) Problems(x Exchange) []string {
	if clean := path.Clean(x.URL.Path); clean != x.URL.Path && clean+"/" != x.URL.Path {
		return nil
	}
	op, ok := c.find(x.Method, x.URL.EscapedPath())
	if !ok { // under the document's other server
		op, ok = c.find(x.Method, strings.TrimPrefix(x.URL.EscapedPath(), "/api"))
	}
	if !ok {
		return nil
	}
	at := pointer{"paths", op.path, op.method}
	f := &findings{c: c, x: x, op: op, about: fmt.Sprintf("%s %s, %d", x.Method, op.path, x.Status)}
	f.answer(at)
	if x.Status < http.StatusBadRequest && !x.AnswerOnly && !refused(x) {
		f.request(at)
	}
	return f.problems
}

// refused says whether an answer is a stream of one frame that has the status of a refusal.
func refused(x Exchange) bool {
	var frame struct {
		Details struct {
			Status int `json:"status"`
		} `json:"error_details"`
	}
	data, ok := strings.CutPrefix(string(x.Answer), "data: ")
	return ok && json.Unmarshal([]byte(data), &frame) == nil && frame.Details.Status >= http.StatusBadRequest
}

// schema compiles what stands at p.
func (c *Checker) schema(variant string, p pointer) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := variant + "#" + p.String()
	if s, ok := c.compiled[name]; ok {
		return s, nil
	}
	s, err := c.compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	c.compiled[name] = s
	return s, nil
}

// pointer is a place in the document (RFC 6901).
type pointer []string

// String is the pointer as the fragment of a URL.
func (p pointer) String() string {
	var out strings.Builder
	for _, part := range p {
		out.WriteString("/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(part)))
	}
	return out.String()
}

func (p pointer) to(parts ...string) pointer { return append(slices.Clip(p), parts...) }

// at finds what stands at p, and where it stands once references are followed.
func (c *Checker) at(p pointer) (any, pointer) {
	var v any = c.doc
	var here pointer
	for _, part := range p {
		switch whole := v.(type) {
		case map[string]any:
			v = whole[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i >= len(whole) {
				return nil, nil
			}
			v = whole[i]
		}
		if v == nil {
			return nil, nil
		}
		here = here.to(part)
		if ref, ok := object(v)["$ref"].(string); ok {
			v, here = c.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/"))
		}
	}
	return v, here
}

func object(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// shut makes schemas of the answers that this server may give: nothing that is not described, and no secrets.
func shut(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = shut(v[i])
		}
	case map[string]any:
		if v["writeOnly"] == true {
			return false
		}
		for _, key := range slices.Collect(maps.Keys(v)) {
			if key != "examples" && key != "example" {
				v[key] = shut(v[key])
			}
		}
		_, more := v["additionalProperties"]
		if isObject(v["type"]) && object(v["properties"]) != nil && !more {
			v["unevaluatedProperties"] = false
		}
	}
	return v
}

func isObject(kind any) bool {
	list, _ := kind.([]any)
	return kind == "object" || slices.Contains(list, any("object"))
}
