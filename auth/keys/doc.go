// Package keys keeps the credentials that a person types in: API keys, user names with passwords, bearer tokens. It asks for
// them by an [auth.RequiredError], takes what was typed on the connect page or in a reply of ADK's, and gives it to tools for
// the server that it was asked for.
//
// What was typed goes straight into the vault, as the access token of a grant in the slot of the request, in the transaction
// that ends the request and wakes its runs. A definition may refer to a secret of its own in the place of a person; then
// nobody is asked and nothing is stored.
//
// Logins at a provider are package oauth's: [Service.Broker] hands on whatever is none of these. It must not know HTTP pages or
// Temporal. The worker asks it for keys, the server hands in what people type.
package keys
