// Package safehttp is the one HTTP client for every address that came from metadata, a definition or a client.
//
// It owns what such a request may reach: schemes, resolved IP addresses, redirects, time and size. Nothing outside this
// package decides that again, and nothing may talk to such an address with another client. It must not know what is
// sent: tokens, retries and the meaning of a status belong to the callers, which are the packages below auth and tools.
//
// The rules:
//
//   - https everywhere; http only to loopback, and only with [Config.AllowLoopback].
//   - The address that is dialled is the address that was checked. A name is resolved once, its addresses are checked,
//     and the connection goes to one of those, so a second DNS answer changes nothing (DNS rebinding).
//   - Private, link-local, shared, multicast, reserved, translated and cloud metadata addresses are refused unless
//     [Config.AllowCIDRs] lists them. Loopback has its own switch.
//   - Redirects are followed for GET and HEAD only, at most five, never from https to http, never into loopback from
//     elsewhere. A hop to another origin carries none of the caller's headers but a few harmless ones.
//   - No proxy is taken from the environment: it would connect on our behalf, past the check.
package safehttp
