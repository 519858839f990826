// Package connect is what a person sees of a login: the page behind a request's link, the button that sends the browser
// to the provider, and the page that the browser comes back to.
//
//	GET  /connect?request=R          renders who is asked for what; changes nothing
//	POST /connect                    CSRF-protected; begins a flow, sets its cookie, redirects to the provider
//	GET  /oauth/callback/{digest}    completes the flow; one path per issuer
//
// It owns HTTP, cookies, headers and wording. It must not know how a login works: state, PKCE, exchange and the rows are
// behind [Logins], which gets parsed values and gives plain ones. Links come from the configured public URL, never from
// Host. Nothing of a query string, a form or a cookie is logged or shown. Package server mounts it behind a sign-in mode.
package connect
