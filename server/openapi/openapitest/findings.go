package openapitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// findings are about one exchange.
type findings struct {
	c        *Checker
	x        Exchange
	op       operation
	about    string
	problems []string
}

func (f *findings) say(format string, args ...any) {
	f.problems = append(f.problems, f.about+": "+fmt.Sprintf(format, args...))
}

// answer checks the status, the headers and the body of the answer.
func (f *findings) answer(op pointer) {
	response, at := f.c.at(op.to("responses", fmt.Sprint(f.x.Status)))
	if response == nil {
		f.say("the status is not described; the answer begins with %.200q", f.x.Answer)
		return
	}
	f.headers(object(response), at)
	content := object(object(response)["content"])
	if len(f.x.Answer) == 0 || f.x.Method == http.MethodHead {
		return
	}
	kind, _, err := mime.ParseMediaType(f.x.Got.Get("Content-Type"))
	if content["*/*"] != nil {
		return
	}
	media := object(content[kind])
	if err != nil || media == nil {
		f.say("the content type %q is not described", f.x.Got.Get("Content-Type"))
		return
	}
	at = at.to("content", kind)
	switch kind {
	case "application/json":
		f.fits("body", closed, at.to("schema"), f.x.Answer)
	case "text/event-stream":
		f.frames(at.to("x-frames"))
	}
}

// telling are headers that mean something to clients: those that are there must be described.
func telling() []string {
	return []string{"Link", "Retry-After", "Www-Authenticate", "Location", "Etag", "Last-Event-Id", "Idempotency-Key", "Deprecation", "Content-Disposition", "Allow"}
}

func (f *findings) headers(response map[string]any, at pointer) {
	described := object(response["headers"])
	known := map[string]bool{}
	for name := range described {
		known[http.CanonicalHeaderKey(name)] = true
		header, place := f.c.at(at.to("headers", name))
		values := f.x.Got.Values(name)
		switch {
		case len(values) == 0 && object(header)["required"] == true:
			f.say("the header %s is missing", name)
		case len(values) > 0:
			f.text("header "+name, place.to("schema"), values[0])
		}
	}
	for _, name := range telling() {
		if f.x.Got.Get(name) != "" && !known[name] {
			f.say("the header %s is not described", name)
		}
	}
}

// frames checks server-sent events, the last of which may be cut off.
func (f *findings) frames(at pointer) {
	described, _ := f.c.at(at)
	whole, _, _ := cutLast(string(f.x.Answer), "\n\n")
	for i, frame := range strings.Split(whole, "\n\n") {
		name, data := "message", []string{}
		for line := range strings.SplitSeq(frame, "\n") {
			field, value, _ := strings.Cut(line, ":")
			switch value = strings.TrimPrefix(value, " "); field {
			case "event":
				name = value
			case "data":
				data = append(data, value)
			}
		}
		if len(data) == 0 {
			continue
		}
		if object(described)[name] == nil {
			f.say("frame %d: the name %q is not described", i, name)
			continue
		}
		f.fits(fmt.Sprintf("frame %d (%s)", i, name), closed, at.to(name), []byte(strings.Join(data, "\n")))
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// fits holds JSON against a schema.
func (f *findings) fits(what, variant string, at pointer, body []byte) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		f.say("%s: no JSON: %v", what, err)
		return
	}
	f.valid(what, variant, at, v)
}

func (f *findings) valid(what, variant string, at pointer, v any) {
	schema, err := f.c.schema(variant, at)
	if err != nil {
		f.say("%s: %v", what, err)
		return
	}
	err = schema.Validate(v)
	var wrong *jsonschema.ValidationError
	switch {
	case errors.As(err, &wrong):
		for _, text := range leaves(wrong) {
			f.say("%s: %s", what, text)
		}
	case err != nil:
		f.say("%s: %v", what, err)
	}
}

// leaves are the causes themselves, a few of them.
func leaves(e *jsonschema.ValidationError) (out []string) {
	const most = 6
	printer := message.NewPrinter(language.English)
	var walk func(*jsonschema.ValidationError)
	walk = func(e *jsonschema.ValidationError) {
		for _, cause := range e.Causes {
			walk(cause)
		}
		if len(e.Causes) == 0 && len(out) < most {
			out = append(out, "/"+strings.Join(e.InstanceLocation, "/")+": "+e.ErrorKind.LocalizedString(printer))
		}
	}
	walk(e)
	slices.Sort(out)
	return slices.Compact(out)
}

// text holds what stands in a path, a query or a header against a schema.
func (f *findings) text(what string, at pointer, text string) {
	schema, _ := f.c.at(at)
	var v any = text
	if kind := object(schema)["type"]; kind == "integer" || kind == "boolean" || kind == "number" {
		if decoded, err := jsonschema.UnmarshalJSON(strings.NewReader(text)); err == nil {
			v = decoded
		}
	}
	f.valid(what, open, at, v)
}

// encoded makes JSON of a value, as the validator reads it.
func encoded(v any) any {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return nil
	}
	return out
}
