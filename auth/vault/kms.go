package vault

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// KMS is a key of a key management service that encrypts the keyset, which then lies in the database: all processes share
// it there, and none keeps a file.
type KMS struct {
	// URI is the key's, as Tink writes it: hcvault://HOST/MOUNT/keys/NAME, aws-kms://ARN.
	URI   string
	Key   tink.AEADWithContext
	Store SwapStore
}

// Client makes the key that a URI of its scheme names. It checks the form of the URI; it need not call the service.
type Client func(ctx context.Context, uri string) (tink.AEADWithContext, error)

// Clients are key management services by the scheme of their URIs ("hcvault").
type Clients map[string]Client

// ErrKMS says that the key management service, or the URI of its key, does not work.
var ErrKMS = errors.New("vault: key management service")

// Key makes the key that uri names.
func (c Clients) Key(ctx context.Context, uri string) (tink.AEADWithContext, error) {
	scheme, _, _ := strings.Cut(uri, "://")
	client, ok := c[scheme]
	if !ok {
		return nil, fmt.Errorf("%w: no client for %s; TARRY_KEYSET is a file, or the URI of a key whose scheme is one of %s",
			ErrKMS, redact(uri), strings.Join(slices.Sorted(maps.Keys(c)), ", "))
	}
	key, err := client(ctx, uri)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKMS, redact(uri), err)
	}
	return key, nil
}

// redact leaves out what might be a password.
func redact(uri string) string {
	if scheme, rest, _ := strings.Cut(uri, "://"); strings.Contains(rest, "@") {
		return scheme + "://…"
	}
	return uri
}

// wrappedRow names the row of the encrypted keyset.
const wrappedRow = "vault-wrapped-keyset"

// wrapped is what lies there. The URI is no secret; it is kept for the error that somebody with another one gets.
type wrapped struct {
	URI    string `json:"kms"`
	Keyset []byte `json:"keyset"`
}

// keysetAD keeps what the service encrypts for us from being taken for anything else of ours.
const keysetAD = "tarry/keyset/1"

func (k *KMS) String() string { return k.URI }

func (k *KMS) lost() string {
	return "if its keyset was in a file so far, move it with: starter vault move --to " + k.URI +
		" (with TARRY_KEYSET or TARRY_DATA_DIR as they were)"
}

func (k *KMS) read(ctx context.Context) ([]byte, error) {
	raw, err := stored(ctx, k.Store, wrappedRow)
	if err != nil && !errors.Is(err, errNone) {
		return nil, fmt.Errorf("vault: read keyset: %w", err)
	}
	return raw, err
}

func (k *KMS) parse(ctx context.Context, raw []byte) (*keyset.Handle, error) {
	var w wrapped
	if err := json.Unmarshal(raw, &w); err != nil {
		return nil, fmt.Errorf("vault: the database's keyset cannot be read: %w", err)
	}
	plain, err := k.Key.DecryptWithContext(ctx, w.Keyset, []byte(keysetAD))
	switch {
	case err != nil && w.URI != k.URI:
		return nil, fmt.Errorf("%w: the database's keyset was encrypted with %s, and TARRY_KEYSET names %s: %w", ErrKMS, w.URI, k.URI, err)
	case err != nil:
		return nil, fmt.Errorf("%w: decrypt the database's keyset with %s: %w; see that the service can be reached, that the key is "+
			"there and enabled, and that this process may decrypt with it", ErrKMS, k.URI, err)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewBinaryReader(bytes.NewReader(plain)))
	if err != nil { // not wrapped, as in a file's
		return nil, fmt.Errorf("vault: what %s decrypts is not a Tink keyset", k.URI)
	}
	return handle, nil
}

func (k *KMS) encode(ctx context.Context, h *keyset.Handle) ([]byte, error) {
	var plain bytes.Buffer
	if err := insecurecleartextkeyset.Write(h, keyset.NewBinaryWriter(&plain)); err != nil {
		return nil, fmt.Errorf("vault: encode keyset: %w", err)
	}
	w := wrapped{URI: k.URI}
	var err error
	if w.Keyset, err = k.Key.EncryptWithContext(ctx, plain.Bytes(), []byte(keysetAD)); err != nil {
		return nil, fmt.Errorf("%w: encrypt the keyset with %s: %w; see that the service can be reached, that the key is there and "+
			"enabled, and that this process may encrypt with it", ErrKMS, k.URI, err)
	}
	raw, err := json.Marshal(w)
	if err != nil {
		return nil, fmt.Errorf("vault: encode keyset: %w", err)
	}
	return raw, nil
}

func (k *KMS) create(ctx context.Context, h *keyset.Handle) error {
	raw, err := k.encode(ctx, h) // outside the store's transaction: the service may be slow
	if err != nil {
		return err
	}
	if _, err := k.Store.Check(ctx, wrappedRow, func() ([]byte, error) { return raw, nil }); err != nil {
		return fmt.Errorf("vault: store keyset: %w", err)
	}
	return nil
}

func (k *KMS) replace(ctx context.Context, old []byte, h *keyset.Handle) error {
	raw, err := k.encode(ctx, h)
	if err != nil {
		return err
	}
	switch ok, err := k.Store.Swap(ctx, wrappedRow, old, raw); {
	case err != nil:
		return fmt.Errorf("vault: store keyset: %w", err)
	case !ok:
		return errChanged
	}
	return nil
}
