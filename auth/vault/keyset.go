package vault

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
)

var errNoFile = errors.New("vault: no keyset file")

func loadKeyset(file string) (*keyset.Handle, error) {
	raw, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoFile
	}
	if err != nil {
		return nil, fmt.Errorf("vault: read keyset: %w", err)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(raw)))
	if err != nil {
		// Not wrapped: a parser may repeat what it read, and that is the key.
		return nil, fmt.Errorf("vault: %s is not a Tink keyset in JSON; put the file back from its backup", file)
	}
	return handle, nil
}

// createKeyset writes a new keyset unless the file exists by then. The whole file appears at once under its name and
// only if the name is free: a crash leaves no half of a keyset, and of two processes one creates it.
func createKeyset(file string) error {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return fmt.Errorf("vault: make keyset: %w", err)
	}
	var raw bytes.Buffer
	if err := insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(&raw)); err != nil {
		return fmt.Errorf("vault: encode keyset: %w", err)
	}
	dir := filepath.Dir(file)
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
	// Unlike rename, link refuses a name that is taken.
	if err := os.Link(temp, file); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("vault: put keyset in place: %w", err)
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
