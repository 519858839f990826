package agent

// privateKey checks that a key and the method that uses it are there together, and nothing else that proves the client.
func (p *authProblems) privateKey() {
	const field = "auth_credential.oauth2.private_key"
	signs := p.ClientAuth == ClientAuthPrivateKey
	if p.PrivateKey != "" {
		if _, err := p.PrivateKey.Parse(); err != nil {
			p.add(field, "%v", err)
		}
	}
	switch {
	case signs && p.PrivateKey == "":
		p.add(field, "missing; token_endpoint_auth_method private_key_jwt signs with it")
	case !signs && p.PrivateKey != "":
		p.add("auth_credential.oauth2.token_endpoint_auth_method", "must be private_key_jwt where there is a private_key")
	case signs && p.ClientSecret != "":
		p.add("auth_credential.oauth2.client_secret", "private_key_jwt needs none; remove it or private_key")
	}
	if signs && p.ClientID == "" && p.Type == AuthMCP {
		p.add("auth_credential.oauth2.client_id", "missing; a private key belongs to a registered client")
	}
	if signs && p.ClientID != "" && p.Type == AuthMCP && p.Issuer == "" {
		p.add("tarry.issuer", "missing; a client with a private key is bound to one issuer, or it would sign for any that a server names")
	}
	if p.PrivateKeyID != "" && p.PrivateKey == "" {
		p.add("auth_credential.oauth2.private_key_id", "there is no private_key that it names; remove it")
	}
	switch {
	case p.AssertionAudience == "":
	case p.AssertionAudience != AudienceTokenEndpoint:
		p.add("tarry.assertion_audience", "%q is not one of issuer, token_endpoint", p.AssertionAudience)
	case !signs:
		p.add("tarry.assertion_audience", "only private_key_jwt makes assertions; remove it")
	}
}
