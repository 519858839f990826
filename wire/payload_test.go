package wire_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

var update = flag.Bool("update", false, "add what is new to testdata/v1; what is there is never taken away")

// payloads are what stands in histories, each with the version of its golden file: a file is only ever added to, so that
// what a run wrote years ago is read by today's types.
func payloads() map[string]any {
	return map[string]any{
		"session_input": &wire.SessionInput{}, "take_input": &wire.TakeInput{}, "emit_input": &wire.EmitInput{}, "emit_result": &wire.EmitResult{}, "open_input": &wire.OpenInput{}, "open_result": &wire.OpenResult{},
		"guard_input": &wire.GuardInput{}, "guard_result": &wire.GuardResult{}, "keep_input": &wire.KeepInput{}, "keep_result": &wire.KeepResult{}, "kept_input": &wire.KeptInput{}, "kept_result": &wire.KeptResult{},
		"read_input": &wire.ReadInput{}, "read_result": &wire.ReadResult{}, "return_input": &wire.ReturnInput{}, "return_result": &wire.ReturnResult{},
		"callback_input": &wire.CallbackInput{}, "callback_result": &wire.CallbackResult{}, "take_result": &wire.TakeResult{},
		"list_input": &wire.ListInput{}, "list_result": &wire.ListResult{}, "model_input": &wire.ModelInput{}, "model_result": &wire.ModelResult{},
		"tool_input": &wire.ToolInput{}, "tool_result": &wire.ToolResult{}, "close_input": &wire.CloseInput{}, "close_result": &wire.CloseResult{},
		"settle_input": &wire.SettleInput{}, "settle_result": &wire.SettleResult{}, "mirror_input": &wire.MirrorInput{},
		"remind_input": &wire.RemindInput{}, "queued_input": &wire.QueuedInput{}, "queued_result": &wire.QueuedResult{},
		"finish_input": &wire.FinishInput{}, "finish_result": &wire.FinishResult{},
		"message": &wire.Message{}, "resolved": &wire.Resolved{}, "cancel": &wire.Cancel{}, "status": &wire.Status{},
	}
}

func goldenPath(name string) string { return filepath.Join("testdata", "v1", name+".json") }

// TestGoldenPayloads decodes what the first version wrote. A field that was renamed, retyped or removed fails here.
func TestGoldenPayloads(t *testing.T) {
	t.Parallel()
	for name, payload := range payloads() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if *update {
				writeGolden(t, name, payload)
			}
			golden, err := os.ReadFile(goldenPath(name))
			require.NoError(t, err)
			decoder := json.NewDecoder(bytes.NewReader(golden))
			decoder.DisallowUnknownFields()
			value := reflect.New(reflect.TypeOf(payload).Elem())
			require.NoError(t, decoder.Decode(value.Interface()), "a field of the golden file is gone")
			require.Empty(t, unset(value.Elem(), name, 0), "the golden file lacks fields; run with -update")
			body, err := json.Marshal(value.Interface())
			require.NoError(t, err)
			require.JSONEq(t, string(golden), string(body))
		})
	}
}

// Runs that were started before a field existed decode too: every field may be absent.
func TestEmptyPayloads(t *testing.T) {
	t.Parallel()
	for name, payload := range payloads() {
		require.NoError(t, json.Unmarshal([]byte(`{}`), payload), name)
		require.NoError(t, json.Unmarshal([]byte(`{"a_field_of_a_later_version":1}`), payload), name)
	}
}

// What is small stays small: history holds what is set, and nothing else.
func TestLeanPayloads(t *testing.T) {
	t.Parallel()
	for payload, want := range map[any]string{
		wire.ToolInput{Call: "adk-x"}:     `{"call":"adk-x"}`,
		wire.ToolResult{Event: "e"}:       `{"event":"e"}`,
		wire.Cancel{}:                     `{}`,
		wire.MirrorInput{State: "idle"}:   `{"state":"idle"}`,
		wire.SettleInput{Reason: "x"}:     `{"reason":"x"}`,
		wire.CloseResult{Outcome: "gone"}: `{"outcome":"gone"}`,
	} {
		body, err := json.Marshal(payload)
		require.NoError(t, err)
		require.Equal(t, want, string(body))
	}
}

// Every exported struct of the package is a payload, or part of one.
func TestEveryPayloadIsGolden(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			visit(typ.Elem())
		case reflect.Struct:
			if known[typ.String()] {
				return
			}
			known[typ.String()] = true
			for i := range typ.NumField() {
				visit(typ.Field(i).Type)
			}
		default:
		}
	}
	for _, payload := range payloads() {
		visit(reflect.TypeOf(payload))
	}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if _, isStruct := spec.Type.(*ast.StructType); isStruct && spec.Name.IsExported() {
				require.True(t, known["wire."+spec.Name.Name], "%s has no golden file", spec.Name.Name)
			}
			return true
		})
	}
}

// unset names the fields that hold nothing.
func unset(v reflect.Value, path string, depth int) []string {
	var out []string
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			if depth > maxDepth {
				return nil
			}
			return []string{path}
		}
		return unset(v.Elem(), path, depth)
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			break
		}
		for i := range v.NumField() {
			out = append(out, unset(v.Field(i), path+"."+v.Type().Field(i).Name, depth+1)...)
		}
		return out
	case reflect.Slice:
		if depth > maxDepth && v.Len() == 0 {
			return nil
		}
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			break
		}
		for i := range v.Len() {
			out = append(out, unset(v.Index(i), fmt.Sprint(path, i), depth)...)
		}
	default:
	}
	if v.IsZero() {
		out = append(out, path)
	}
	return out
}

// maxDepth ends types that contain themselves.
const maxDepth = 4

// writeGolden fills what the golden file lacks. It never changes a value that is there.
func writeGolden(t *testing.T, name string, payload any) {
	t.Helper()
	value := reflect.New(reflect.TypeOf(payload).Elem())
	if old, err := os.ReadFile(goldenPath(name)); err == nil {
		require.NoError(t, json.Unmarshal(old, value.Interface()))
	}
	n := 0
	fill(value.Elem(), &n, 0)
	body, err := json.MarshalIndent(value.Interface(), "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(goldenPath(name)), 0o750))
	require.NoError(t, os.WriteFile(goldenPath(name), append(body, '\n'), 0o600))
}

// fill sets every field that is not set to a value of its own.
func fill(v reflect.Value, n *int, depth int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if _, ok := v.Interface().(time.Time); ok {
			if v.IsZero() {
				v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, *n, 0, time.UTC)))
			}
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n, depth+1)
		}
		return
	case reflect.Pointer:
		if depth > maxDepth && v.IsNil() {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fill(v.Elem(), n, depth)
		return
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]byte]() {
			if v.Len() == 0 {
				v.SetBytes([]byte("bytes"))
			}
			return
		}
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if v.Len() == 0 {
				v.SetBytes(fmt.Appendf(nil, "%d", *n))
			}
			return
		}
		if depth > maxDepth && v.Len() == 0 {
			return
		}
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		fill(v.Index(0), n, depth)
		return
	default:
	}
	if !v.IsZero() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("value ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Map:
		if v.Type() == reflect.TypeFor[map[string]json.RawMessage]() {
			v.Set(reflect.ValueOf(map[string]json.RawMessage{fmt.Sprint("key ", *n): json.RawMessage(`"value"`)}))
			return
		}
		v.Set(reflect.ValueOf(map[string]string{fmt.Sprint("key ", *n): fmt.Sprint("value ", *n)}))
	default:
		panic("no value for " + v.Type().String())
	}
}
