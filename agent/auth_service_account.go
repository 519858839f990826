package agent

// serviceAccount checks a credential that is a key of Google's: everything about it stands in the key.
func (p *authProblems) serviceAccount() {
	const field = "auth_credential.service_account."
	if p.ServiceAccount == "" {
		p.add(field+"service_account_credential", "missing; refer to the JSON of the account's key")
	} else if _, err := p.ServiceAccount.Parse(); err != nil {
		p.add(field+"service_account_credential", "%v", err)
	}
	switch {
	case p.UseIDToken && p.Audience == "":
		p.add(field+"audience", "missing; an ID token is for somebody, mostly the URL of the service")
	case p.UseIDToken && len(p.Scopes) > 0:
		p.add(field+"scopes", "an ID token has none; remove them or use_id_token")
	case !p.UseIDToken && p.Audience != "":
		p.add(field+"audience", "only an ID token has one; remove it or set use_id_token")
	case !p.UseIDToken && len(p.Scopes) == 0:
		p.add(field+"scopes", "missing; an access token of Google's is for scopes")
	}
	if p.ClientID != "" || p.ClientSecret != "" || p.PrivateKey != "" || p.Grant != "" {
		p.add("auth_credential", "a service account needs no client and no grant; remove them")
	}
}
