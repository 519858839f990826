package auth

import (
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[secret]"

// Secret is a string that cannot be printed, logged or marshalled by accident. [Secret.Reveal] is the only way to it.
// It holds a pointer because package fmt, for a wrong verb on a nested pointer, prints fields without asking; compare
// secrets by what they reveal, not with ==.
type Secret struct{ value *string }

// NewSecret wraps value.
func NewSecret(value string) Secret { return Secret{value: &value} }

// Reveal returns the secret. The caller sends it to the one place it is for.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// IsZero says whether there is none.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, so that no verb prints the field. fmt.State keeps an error itself.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
