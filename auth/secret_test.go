package auth_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
)

const canary = "canary-0123456789"

// TestSecretsCannotBePrinted goes through everything that prints, alone and inside other values.
func TestSecretsCannotBePrinted(t *testing.T) {
	t.Parallel()
	secret := auth.NewSecret(canary)
	token := auth.AccessToken{Access: secret, Version: 1}
	values := map[string]any{
		"secret": secret, "pointer": &secret, "token": token, "token pointer": &token,
		"slice": []auth.Secret{secret}, "map": map[string]auth.Secret{"k": secret}, "any": []any{secret, &token},
		"struct": struct{ Inner struct{ S auth.Secret } }{struct{ S auth.Secret }{secret}},
		"key":    map[auth.Secret]int{secret: 1},
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T %v", "%10.3v"} {
				args := []any{v}
				if verb == "%T %v" {
					args = []any{v, v}
				}
				hidden(t, fmt.Sprintf(verb, args...))
			}
			hidden(t, fmt.Sprint(v))
			hidden(t, fmt.Errorf("wrapped: %v", v).Error())
			if raw, err := json.Marshal(v); err == nil {
				hidden(t, string(raw))
			}
			if raw, err := xml.Marshal(v); err == nil {
				hidden(t, string(raw))
			}
			var out bytes.Buffer
			for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
				slog.New(h).Info("message", "value", v, "group", slog.GroupValue(slog.Any("inner", v)))
			}
			hidden(t, out.String())
		})
	}
}

func hidden(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, canary)
	require.NotContains(t, text, fmt.Sprintf("%x", canary))
	require.NotContains(t, text, fmt.Sprintf("%X", canary))
}

func TestSecretIsRevealedOnRequestOnly(t *testing.T) {
	t.Parallel()
	require.Equal(t, canary, auth.NewSecret(canary).Reveal())
	require.True(t, auth.Secret{}.IsZero())
	require.False(t, auth.NewSecret(canary).IsZero())
	raw, err := json.Marshal(map[string]any{"s": auth.NewSecret(canary)})
	require.NoError(t, err)
	require.JSONEq(t, `{"s":"[secret]"}`, string(raw))
}

func TestRequiredErrorIsFound(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("call: %w", &auth.RequiredError{Need: auth.Need{Slot: auth.Slot{Issuer: "https://as.example"}}})
	var r *auth.RequiredError
	require.ErrorAs(t, err, &r)
	require.ErrorContains(t, err, "https://as.example")
	require.NotErrorIs(t, err, errors.ErrUnsupported)
}
