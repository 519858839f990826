// Package wiring puts together what worker and server share: the store, the vault, the guarded HTTP client and the login
// service on top of them.
//
// It exists so that the two processes cannot differ in how a secret is sealed or an address is checked. It must hold no
// logic of its own and reads no environment: cmd and the root package fill its Config.
package wiring
