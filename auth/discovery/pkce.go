package discovery

import "slices"

// pkceRule is what metadata must say about PKCE. S256 is sent whatever it says.
type pkceRule int

const (
	// pkceRequired: a client must refuse a server that does not list its methods (MCP authorization, "Authorization Code
	// Protection").
	pkceRequired pkceRule = iota
	// pkceUnsaid lets a server pass that lists none, and none that lists others only.
	pkceUnsaid
	// pkceIgnored is OpenID Connect, whose providers are chosen by hand and need not announce it.
	pkceIgnored
	// noCode is a token without a login: there is no code to protect, and the server may have no endpoint that gives one.
	noCode
)

func (r Rules) pkce() pkceRule {
	if r.NoLogin {
		return noCode
	}
	if r.AllowMissingPKCE {
		return pkceUnsaid
	}
	return pkceRequired
}

// refuses says why a server with these methods is not used; empty if it is.
func (p pkceRule) refuses(methods []string) string {
	switch {
	case p == pkceIgnored || p == noCode || slices.Contains(methods, "S256"):
		return ""
	case len(methods) > 0:
		return "its metadata (code_challenge_methods_supported) does not offer PKCE with S256"
	case p == pkceRequired:
		return "its metadata does not say that it supports PKCE (code_challenge_methods_supported); " +
			"if it is known to, write allow_missing_pkce: true under tarry"
	}
	return ""
}
