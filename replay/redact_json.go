package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
)

// names are the fields of payloads that hold names, kinds and states; every other text is replaced. So a field that is new
// is replaced until it is known.
func names(field string) bool {
	return slices.Contains([]string{
		"definition", "plan", "toolset", "tool", "agent", "transfer", "after", "op",
		"mode", "state", "end", "reason", "outcome", "limit", "most", "ActivityID", "ActivityType",
	}, field)
}

// Fields below which all is alike.
const (
	plan  = "plan"  // names and rules of the definition
	lists = "lists" // listings by toolset
	value = "value" // what a custom agent reads: content
	body  = "body"  // a part of a journal that holds such values
)

// payload redacts the texts of a JSON payload.
func (r *redactor) payload(p *commonpb.Payload) error {
	switch encoding := string(p.GetMetadata()["encoding"]); encoding {
	case "json/plain":
		p.Metadata = map[string][]byte{"encoding": []byte(encoding)}
		data, err := r.json(p.GetData())
		if err != nil {
			return err
		}
		p.Data = data
	case "binary/null":
		p.Data = nil
	default:
		return fmt.Errorf("a payload is encoded as %q, and only plain JSON can be redacted: export it without the codec", encoding)
	}
	return nil
}

// json redacts a value and keeps the order of its fields, since inputs are compared as they stand.
func (r *redactor) json(body []byte) ([]byte, error) {
	in := json.NewDecoder(bytes.NewReader(body))
	in.UseNumber()
	var out bytes.Buffer
	if err := r.value(in, &out, ""); err != nil {
		return nil, fmt.Errorf("payload is not JSON: %w", err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("payload is not JSON: something follows it")
	}
	return out.Bytes(), nil
}

// value copies the next value. A list has the name of its field.
func (r *redactor) value(in *json.Decoder, out *bytes.Buffer, field string) error {
	token, err := in.Token()
	if err != nil {
		return err //nolint:wrapcheck // the caller says where
	}
	switch t := token.(type) {
	case json.Delim:
		return r.composite(in, out, field, t)
	case string:
		return write(out, r.string(t, field))
	case json.Number:
		out.WriteString(t.String())
		return nil
	default: // bool, nil
		return write(out, t)
	}
}

func (r *redactor) composite(in *json.Decoder, out *bytes.Buffer, field string, open json.Delim) error {
	out.WriteRune(rune(open))
	for first := true; in.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		name := field
		if open == '{' {
			key, err := in.Token()
			if err != nil {
				return err //nolint:wrapcheck // the caller says where
			}
			name, _ = key.(string)
			if err := write(out, r.key(name, field)); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if field == plan || field == lists || field == value {
			name = field
		}
		if err := r.value(in, out, name); err != nil {
			return err
		}
	}
	end, err := in.Token()
	if err != nil {
		return err //nolint:wrapcheck // the caller says where
	}
	return closing(out, end)
}

// key replaces the keys of what custom agents read where they are data, as in a map by people's addresses: the names of fields
// are identifiers.
func (r *redactor) key(name, field string) string {
	const longest = 64
	if field != value || r.KeepValues || len(name) <= longest && identifier(name) {
		return name
	}
	return r.id(name)
}

func identifier(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(c rune) bool {
		return c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

func closing(out *bytes.Buffer, end json.Token) error {
	d, ok := end.(json.Delim)
	if !ok {
		return errors.New("a list or an object does not end")
	}
	out.WriteRune(rune(d))
	return nil
}

func (r *redactor) string(text, field string) string {
	if names(field) || (field == value || field == body) && r.KeepValues {
		return text
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		if r.collecting {
			return text
		}
		return r.moved(at).Format(time.RFC3339Nano)
	}
	return r.id(text)
}

// write encodes as the SDK's data converter does.
func write(out *bytes.Buffer, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	out.Write(body)
	return nil
}
