package kms_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/kms"
)

// answers is a service that "encrypts" by writing everything down, and gives it back only for the same associated data.
func answers(t *testing.T, w http.ResponseWriter, r *http.Request, encrypt bool, plain, cipher, ad, prefix string) {
	t.Helper()
	var body map[string]any
	if !assertJSON(t, r, &body) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	bound, err := json.Marshal(body[ad])
	if err != nil {
		t.Error(err)
	}
	out := map[string]any{}
	if encrypt {
		raw, err := json.Marshal([]any{body[plain], string(bound)})
		if err != nil {
			t.Error(err)
		}
		out[cipher] = prefix + base64.StdEncoding.EncodeToString(raw)
	} else {
		text, _ := body[cipher].(string)
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, prefix))
		var kept []string
		if err != nil || json.Unmarshal(raw, &kept) != nil || len(kept) != 2 || kept[1] != string(bound) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		out[plain] = kept[0]
	}
	if prefix != "" {
		out = map[string]any{"data": out}
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		t.Error(err)
	}
}

func assertJSON(t *testing.T, r *http.Request, out any) bool {
	t.Helper()
	err := json.NewDecoder(r.Body).Decode(out)
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

func roundTrip(t *testing.T, uri string) {
	t.Helper()
	key, err := kms.Clients(os.LookupEnv).Key(t.Context(), uri)
	require.NoError(t, err)
	cipher, err := key.EncryptWithContext(t.Context(), []byte("keyset"), []byte("ad"))
	require.NoError(t, err)
	plain, err := key.DecryptWithContext(t.Context(), cipher, []byte("ad"))
	require.NoError(t, err)
	require.Equal(t, "keyset", string(plain))
	_, err = key.DecryptWithContext(t.Context(), cipher, []byte("other"))
	require.Error(t, err)
}

func TestVault(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Vault-Token") != "token-1" || r.Header.Get("X-Vault-Namespace") != "team" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		switch r.URL.Path {
		case "/v1/transit/encrypt/tarry":
			answers(t, w, r, true, "plaintext", "ciphertext", "associated_data", "vault:v1:")
		case "/v1/transit/decrypt/tarry":
			answers(t, w, r, false, "plaintext", "ciphertext", "associated_data", "vault:v1:")
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("token-1\n"), 0o600))
	t.Setenv("VAULT_CACERT", ca)
	t.Setenv("VAULT_NAMESPACE", "team")
	t.Setenv("VAULT_TOKEN", "")
	t.Setenv("VAULT_TOKEN_FILE", token)
	uri := strings.Replace(server.URL, "https://", "hcvault://", 1) + "/transit/keys/tarry"
	roundTrip(t, uri)

	t.Setenv("VAULT_TOKEN", "token-2")
	key, err := kms.Clients(os.LookupEnv).Key(t.Context(), uri)
	require.NoError(t, err)
	_, err = key.EncryptWithContext(t.Context(), []byte("keyset"), nil)
	require.ErrorContains(t, err, "403")
	require.NotContains(t, err.Error(), "token-2")
}

func TestAWS(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		encrypt := r.Header.Get("X-Amz-Target") == "TrentService.Encrypt"
		answers(t, w, r, encrypt, "Plaintext", "CiphertextBlob", "EncryptionContext", "")
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_KMS", server.URL)
	t.Setenv("AWS_REGION", "eu-central-1")
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	roundTrip(t, "aws-kms://arn:aws:kms:eu-central-1:111122223333:key/1234abcd")
}

func TestKeysAreNamedWrongly(t *testing.T) {
	t.Parallel()
	none := func(string) (string, bool) { return "", false }
	for uri, says := range map[string]string{
		"hcvault://vault.example":                         "hcvault://vault.example:8200/transit/keys/tarry",
		"hcvault://vault.example/transit/tarry":           "malformed",
		"hcvault://user:pw@vault.example/transit/keys/t":  "malformed",
		"hcvault://vault.example:8200/transit/keys/tarry": "VAULT_TOKEN",
		"aws-kms://key":        "arn:aws:kms",
		"gcp-kms://projects/p": "aws-kms, hcvault",
	} {
		_, err := kms.Clients(none).Key(t.Context(), uri)
		require.ErrorContains(t, err, says, uri)
	}
}
