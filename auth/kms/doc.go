// Package kms has clients of key management services, for keysets that lie in the database encrypted with a service's key:
// HashiCorp Vault's transit engine and OpenBao's, and AWS KMS.
//
// Importing it links their libraries, which is why tarry.Config takes clients instead of schemes: a worker of one's own that
// keeps its keyset in a file has none of them, and one with another service brings its client, a few lines around Tink's
// (github.com/tink-crypto/tink-go-gcpkms for Google Cloud). It must not know what is encrypted.
package kms
