package agent

// idToken checks that there is an ID token and somebody to verify it with.
func (p *authProblems) idToken() {
	switch {
	case !p.UseIDToken:
	case p.Type != AuthOpenIDConnect:
		p.add("tarry.use_id_token", "only openIdConnect has ID tokens; remove it or use that type")
	case p.Issuer == "":
		p.add("auth_scheme.issuerUrl", "missing; the ID token is verified with the keys of its issuer")
	}
}
