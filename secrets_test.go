package tarry_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/engine"
	"tarry/internal/wiring"
	"tarry/models/gemini"
	"tarry/models/openai"
	"tarry/server/connect"
	"tarry/server/signin"
	"tarry/tools/mcp"
)

const canary = "canary-0123456789"

// Every type with a field that is a secret, found by what it has: nothing that prints shows one, however deep it lies, also
// inside fields that are not exported.
func TestTypesWithSecretsCannotBePrinted(t *testing.T) {
	t.Parallel()
	for _, v := range []any{
		&tarry.Config{}, &wiring.Config{}, &auth.AccessToken{}, &auth.KeyValue{}, &oauth.Config{},
		&gemini.Config{}, &openai.Config{}, &engine.Config{}, &wiring.Parts{}, &mcp.Config{}, &connect.Config{}, &signin.OIDC{},
	} {
		n := fill(reflect.ValueOf(v).Elem())
		value := reflect.ValueOf(v).Elem().Interface()
		t.Run(fmt.Sprintf("%T", value), func(t *testing.T) {
			t.Parallel()
			if _, ok := v.(*oauth.Config); !ok { // has none of its own; whoever adds one finds it covered
				require.Positive(t, n)
			}
			type hidden struct{ inner any }
			for _, shown := range []any{value, v, hidden{value}, &hidden{v}, []any{value}, map[string]any{"k": value}} {
				var out bytes.Buffer
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
					_, _ = fmt.Fprintf(&out, verb, shown)
				}
				if raw, err := json.Marshal(shown); err == nil {
					out.Write(raw)
				}
				for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
					slog.New(h).Info("message", "value", shown)
				}
				for _, form := range []string{canary, hex.EncodeToString([]byte(canary))} {
					require.NotContains(t, out.String(), form)
				}
			}
		})
	}
}

// fill sets every secret of a struct, and returns how many there are.
func fill(v reflect.Value) (n int) {
	for i := range v.NumField() {
		f := v.Field(i)
		switch {
		case f.Type() == reflect.TypeFor[auth.Secret]() && f.CanSet():
			f.Set(reflect.ValueOf(auth.NewSecret(canary)))
			n++
		case f.Type() == reflect.TypeFor[[]auth.Secret]() && f.CanSet():
			f.Set(reflect.ValueOf([]auth.Secret{auth.NewSecret(canary)}))
			n++
		case f.Kind() == reflect.Struct && f.CanSet():
			n += fill(f)
		}
	}
	return n
}
