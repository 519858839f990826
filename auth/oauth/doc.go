// Package oauth is the machinery of a login: it begins one, completes it, recovers it after a crash, and gives tools the
// tokens that came of it, refreshed.
//
//	broker (a tool's attempt)            page, button, callback (a browser)
//	Token ─▶ grant ─▶ refresh            Page ─▶ Begin ─▶ provider ─▶ Complete
//	Challenged ─▶ RequiredError ─▶ request ┘                             │
//	                                     wake ◀─ Commit (token, messages, audit: one transaction)
//
// It owns the order of the checks in a callback, PKCE, state, client registration, token requests and the one refresh
// at a time. It must not know HTTP handlers, SQL, sessions or Temporal: a [Store] keeps its rows, a [Vault] its secrets,
// and whoever wires it is told by [Config.Wake] that messages are waiting. Errors never contain what a provider wrote.
package oauth
