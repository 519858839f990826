package vault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

// fileSource is a keyset in a file of Tink's JSON form, in the clear.
type fileSource string

func (f fileSource) String() string { return string(f) }

func (f fileSource) lost() string {
	return "put the file back from its backup, or start with an empty database (everybody logs in again)"
}

func (f fileSource) read(context.Context) ([]byte, error) {
	raw, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNone
	}
	if err != nil {
		return nil, fmt.Errorf("vault: read keyset: %w", err)
	}
	return raw, nil
}

func (f fileSource) parse(_ context.Context, raw []byte) (*keyset.Handle, error) {
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
	if err != nil {
		// Not wrapped: a parser may repeat what it read, and that is the key.
		return nil, fmt.Errorf("vault: %s is not a Tink keyset in JSON; put the file back from its backup", f)
	}
	return handle, nil
}

// create: the whole file appears at once under its name and only if the name is free: a crash leaves no half of a keyset,
// and of two processes one creates it.
func (f fileSource) create(_ context.Context, h *keyset.Handle) error {
	return f.write(h, func(temp string) error {
		// Unlike rename, link refuses a name that is taken.
		if err := os.Link(temp, string(f)); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("vault: put keyset in place: %w", err)
		}
		return nil
	})
}

// replace is called under the rotation's lock.
func (f fileSource) replace(ctx context.Context, old []byte, h *keyset.Handle) error {
	switch now, err := f.read(ctx); {
	case err != nil:
		return err
	case !bytes.Equal(now, old):
		return errChanged
	}
	return f.write(h, func(temp string) error {
		if err := os.Rename(temp, string(f)); err != nil {
			return fmt.Errorf("vault: put keyset in place: %w", err)
		}
		return nil
	})
}

func (f fileSource) write(h *keyset.Handle, place func(temp string) error) error {
	var raw bytes.Buffer
	if err := insecurecleartextkeyset.Write(h, keyset.NewJSONWriter(&raw)); err != nil {
		return fmt.Errorf("vault: encode keyset: %w", err)
	}
	dir := filepath.Dir(string(f))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("vault: make keyset folder: %w", err)
	}
	temp, err := writeTemp(dir, raw.Bytes())
	if temp != "" {
		defer func() { _ = os.Remove(temp) }()
	}
	if err != nil {
		return fmt.Errorf("vault: write keyset: %w", err)
	}
	if err := place(temp); err != nil {
		return err
	}
	return syncDir(dir)
}

// writeTemp returns the name of a synced file with content and mode 0600 (os.CreateTemp opens with O_EXCL).
func writeTemp(dir string, content []byte) (string, error) {
	f, err := os.CreateTemp(dir, ".keyset-*")
	if err != nil {
		return "", fmt.Errorf("create: %w", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return f.Name(), errors.Join(err, f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("vault: open keyset folder: %w", err)
	}
	err = errors.Join(d.Sync(), d.Close())
	if err != nil {
		return fmt.Errorf("vault: sync keyset folder: %w", err)
	}
	return nil
}
