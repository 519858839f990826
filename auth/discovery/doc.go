// Package discovery finds out who gives the credential for a resource: from a refusal to protected resource metadata (RFC
// 9728), from there to authorization server metadata (RFC 8414, OpenID Connect Discovery 1.0).
//
// It owns which document is believed for which URL. It must not register clients, begin logins or keep anything, and it
// never guesses an endpoint that no document names. Its errors use a fixed vocabulary and the names of hosts: what a
// server wrote, and URLs with their queries, are not repeated. Package oauth calls it.
package discovery
