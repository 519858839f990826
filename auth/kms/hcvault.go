package kms

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/hashicorp/vault/api"
	"github.com/tink-crypto/tink-go-hcvault/v2/integration/hcvault"
	"github.com/tink-crypto/tink-go/v2/tink"

	"tarry/auth/vault"
)

var errNoToken = errors.New("no token; set VAULT_TOKEN, or VAULT_TOKEN_FILE to the file that an agent of Vault writes")

// timeout bounds one request to Vault, which its library repeats twice.
const timeout = 10 * time.Second

// Vault is a key of a transit engine: hcvault://HOST[:PORT]/MOUNT/keys/NAME, always by https. The token is read at each use,
// so that an agent may renew it.
func Vault(lookup func(string) (string, bool)) vault.Client {
	return func(_ context.Context, uri string) (tink.AEADWithContext, error) {
		u, err := url.Parse(uri)
		if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || !keyPath(u.EscapedPath()) {
			return nil, fmt.Errorf("%w: it looks like hcvault://vault.example:8200/transit/keys/tarry", errForm)
		}
		k := &transit{address: "https://" + u.Host, path: u.EscapedPath(), lookup: lookup}
		_, err = k.token() // found out at start
		return k, err
	}
}

func keyPath(path string) bool {
	parts := strings.Split(path, "/")
	return len(parts) >= 4 && parts[len(parts)-2] == "keys" && parts[len(parts)-1] != ""
}

type transit struct {
	address, path string
	lookup        func(string) (string, bool)
}

// EncryptWithContext implements [tink.AEADWithContext].
func (k *transit) EncryptWithContext(_ context.Context, plain, ad []byte) ([]byte, error) {
	key, err := k.key()
	if err != nil {
		return nil, err
	}
	return key.Encrypt(plain, ad) //nolint:wrapcheck // package vault says what it was for
}

// DecryptWithContext implements [tink.AEADWithContext].
func (k *transit) DecryptWithContext(_ context.Context, cipher, ad []byte) ([]byte, error) {
	key, err := k.key()
	if err != nil {
		return nil, err
	}
	return key.Decrypt(cipher, ad) //nolint:wrapcheck // as above
}

func (k *transit) key() (tink.AEAD, error) {
	token, err := k.token()
	if err != nil {
		return nil, err
	}
	config := api.DefaultConfig() // reads VAULT_CACERT and the like
	if config.Error != nil {
		return nil, fmt.Errorf("configure Vault: %w", config.Error)
	}
	config.Address, config.Timeout = k.address, timeout
	client, err := api.NewClient(config)
	if err != nil {
		return nil, fmt.Errorf("configure Vault: %w", err)
	}
	client.SetToken(token)
	if namespace, _ := k.lookup("VAULT_NAMESPACE"); namespace != "" {
		client.SetNamespace(namespace)
	}
	key, err := hcvault.NewAEAD(k.path, client.Logical())
	if err != nil {
		return nil, fmt.Errorf("configure Vault: %w", err)
	}
	return key, nil
}

func (k *transit) token() (string, error) {
	if token, _ := k.lookup("VAULT_TOKEN"); token != "" {
		return token, nil
	}
	file, _ := k.lookup("VAULT_TOKEN_FILE")
	if file == "" {
		return "", errNoToken
	}
	body, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("VAULT_TOKEN_FILE: %w", err)
	}
	return strings.TrimSpace(string(body)), nil
}
