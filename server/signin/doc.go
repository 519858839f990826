// Package signin says who is calling. A sign-in mode is a middleware that puts a [Principal] into the request's context;
// a Principal is the only way to an [agent.Owner], so that no handler takes a user id from a path or a body on trust.
//
// [None] is the mode of one local operator. It keeps other machines, other sites' pages and DNS rebinding out by what a
// browser cannot forge: the peer's address, Host, Origin, Sec-Fetch-Site and the content type.
//
// [Gate] is the mode of servers that others reach. It knows people by the session that an OpenID provider began ([OIDC]),
// programs by a signed access token ([JWT]), everybody by the word of a listed proxy ([Proxy]), and applications that act for
// users of their own ([Service]); the browsers of those users are [Guests].
//
// It owns the session cookie and the pages of sign-in and sign-out, keeps nothing itself ([Sessions], [Sealer]), and must not
// know what the handlers behind it do. Package server wraps each route with the mode and says what kind of [Route] it is; the
// handlers call [FromContext].
package signin
