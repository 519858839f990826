// Package vault encrypts the secrets that rest in the database, each bound to the row, the column and the person that it
// belongs to: a ciphertext that was copied elsewhere does not open.
//
// It owns the keyset file and the proof that the keyset fits the database. It must not know what it encrypts, keep
// plaintext, or talk to a network. Package oauth seals and opens through it; wiring opens it once at start.
package vault
