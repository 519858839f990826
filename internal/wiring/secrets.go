package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"tarry/agent"
	"tarry/auth"
)

// ErrNoSecret says that a reference leads nowhere.
var ErrNoSecret = errors.New("secret is not set")

// maxSecret bounds a secret file, in bytes.
const maxSecret = 64 << 10

// Secrets resolves references at the moment of use: variables through lookup, files below dir and nowhere else.
func Secrets(dir string, lookup func(string) (string, bool)) func(context.Context, agent.Source) (auth.Secret, error) {
	return func(_ context.Context, src agent.Source) (auth.Secret, error) {
		switch src.Kind {
		case "env":
			if lookup != nil {
				if value, ok := lookup(src.Name); ok && value != "" {
					return auth.NewSecret(value), nil
				}
			}
			return auth.Secret{}, fmt.Errorf("%w: variable %s", ErrNoSecret, src.Name)
		case "file":
			return file(dir, src.Name)
		default:
			return auth.Secret{}, fmt.Errorf("%w: unknown kind of reference %q", ErrNoSecret, src.Kind)
		}
	}
}

func file(dir, name string) (auth.Secret, error) {
	if dir == "" {
		return auth.Secret{}, fmt.Errorf("%w: file %s; set TARRY_SECRETS_DIR", ErrNoSecret, name)
	}
	root, err := os.OpenRoot(dir) // a link that leaves the folder is refused
	if err != nil {
		return auth.Secret{}, fmt.Errorf("open secrets folder: %w", err)
	}
	defer root.Close()
	body, err := root.ReadFile(name)
	if err != nil {
		return auth.Secret{}, fmt.Errorf("%w: file %s", ErrNoSecret, name)
	}
	if len(body) > maxSecret {
		return auth.Secret{}, fmt.Errorf("secret file %s is larger than %d bytes", name, maxSecret)
	}
	return auth.NewSecret(strings.TrimRight(string(body), "\r\n")), nil
}
