package demo

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// redeemCode is RFC 6749 section 4.1.3 with RFC 7636 and RFC 8707. The mutex is held.
func (p *Provider) redeemCode(client Client, form url.Values) tokenAnswer {
	c, ok := p.codes[form.Get("code")]
	bad := func(why string) tokenAnswer { return tokenError(http.StatusBadRequest, "invalid_grant", why) }
	switch {
	case !ok:
		return bad("unknown code")
	case c.grant.clientID != client.ID:
		return bad("code of another client")
	case c.used:
		// Somebody has a copy: what came of the first use falls too (RFC 6749 section 4.1.2).
		c.grant.revoked = true
		return bad("code was used before")
	case c.grant.revoked:
		return bad("grant is revoked")
	case !p.now().Before(c.expires):
		return bad("code has expired")
	case c.redirectURI != form.Get("redirect_uri"):
		return bad("redirect_uri differs from the authorization request")
	case !verifierFits(c.challenge, form):
		return bad("code_verifier does not fit")
	}
	if answer, bad := p.resourceDiffers(c.grant, form); bad {
		return answer
	}
	c.used = true
	return p.issue(client, c.grant, c.grant.scopes, true)
}

// verifierFits is RFC 7636 section 4.6. A verifier without a challenge is refused: it is how a downgrade looks.
func verifierFits(challenge string, form url.Values) bool {
	verifier := form.Get("code_verifier")
	if challenge == "" {
		return !form.Has("code_verifier")
	}
	if len(verifier) < 43 || len(verifier) > 128 {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	got := base64.RawURLEncoding.EncodeToString(sum[:])
	return subtle.ConstantTimeCompare([]byte(got), []byte(challenge)) == 1
}

// resourceDiffers refuses a token request whose resource is not byte by byte that of the authorization request.
func (p *Provider) resourceDiffers(g *grant, form url.Values) (tokenAnswer, bool) {
	if !form.Has("resource") && (p.faults.ResourceOptional || g.resource == "" && slices.Contains(g.scopes, ScopeOpenID)) {
		return tokenAnswer{}, false
	}
	if form.Get("resource") == g.resource && form.Has("resource") {
		return tokenAnswer{}, false
	}
	return tokenError(http.StatusBadRequest, "invalid_target", "resource differs from the authorization request"), true
}

// redeemRefresh is RFC 6749 section 6 with the rotation of RFC 9700 section 4.14. The mutex is held.
func (p *Provider) redeemRefresh(client Client, form url.Values) tokenAnswer {
	t, ok := p.refresh[form.Get("refresh_token")]
	bad := func(why string) tokenAnswer { return tokenError(http.StatusBadRequest, "invalid_grant", why) }
	switch {
	case !ok:
		return bad("unknown refresh token")
	case t.grant.clientID != client.ID:
		return bad("refresh token of another client")
	case t.grant.revoked:
		return bad("grant is revoked")
	case t.used:
		// Two parties hold it and nobody knows which is honest: the whole grant falls.
		t.grant.revoked = true
		return bad("refresh token was used before")
	}
	if answer, bad := p.resourceDiffers(t.grant, form); bad {
		return answer
	}
	scopes := t.grant.scopes
	if asked := strings.Fields(form.Get("scope")); len(asked) > 0 {
		for _, s := range asked {
			if !slices.Contains(t.grant.scopes, s) {
				return tokenError(http.StatusBadRequest, "invalid_scope", "scope was not granted")
			}
		}
		scopes = asked
	}
	rotate := !p.faults.NoRotation
	t.used = rotate
	return p.issue(client, t.grant, scopes, rotate)
}

// ownToken is RFC 6749 section 4.4: the client's own token, for clients that were registered for nothing less. The mutex is
// held.
func (p *Provider) ownToken(client Client, form url.Values) tokenAnswer {
	if client.Secret == "" && client.PublicKey == nil || !slices.Contains(client.GrantTypes, grantClient) {
		return tokenError(http.StatusBadRequest, "unauthorized_client", "grant type is not registered")
	}
	scopes := strings.Fields(form.Get("scope"))
	for _, s := range scopes {
		if !slices.Contains(p.cfg.Scopes, s) {
			return tokenError(http.StatusBadRequest, "invalid_scope", "unknown scope")
		}
	}
	g := &grant{user: "client " + client.ID, clientID: client.ID, resource: form.Get("resource"), scopes: scopes}
	return p.issue(client, g, scopes, false)
}

// issue makes the tokens of a success. The mutex is held.
func (p *Provider) issue(client Client, g *grant, scopes []string, withRefresh bool) tokenAnswer {
	f := p.faults
	ttl := f.AccessTokenTTL
	if ttl <= 0 {
		ttl = defaultAccessTTL
	}
	fields := map[string]any{
		"access_token": p.newAccess(g, scopes, ttl),
		"token_type":   "Bearer",
		"scope":        strings.Join(scopes, " "),
	}
	if !f.NoExpiresIn {
		now := p.now()
		fields["expires_in"] = until(now, now.Add(ttl))
	}
	offline := !f.RequireOfflineAccess || slices.Contains(g.scopes, ScopeOffline)
	if withRefresh && offline && !f.NoRefreshToken && client.allows(grantRefresh) {
		fields["refresh_token"] = p.newRefresh(g)
	}
	if g.person {
		p.identify(fields, g, ttl)
	}
	return tokenAnswer{status: http.StatusOK, fields: fields}
}
