package demo

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Sign makes a JSON Web Token of typ with the provider's key, such as an access token (RFC 9068). Claims that are missing are
// those of a token of this issuer that is good for an hour; a nil one is left out.
func (p *Provider) Sign(typ string, claims map[string]any) (string, error) {
	key, _, err := p.signer.keys()
	if err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	p.mu.Lock()
	now, issuer := p.now(), p.url+p.cfg.IssuerPath
	p.mu.Unlock()
	all := map[string]any{"iss": issuer, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == nil })
	options := (&jose.SignerOptions{}).WithType(jose.ContentType(typ)).WithHeader("kid", signingKeyID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: key}, options)
	if err != nil {
		return "", fmt.Errorf("make signer: %w", err)
	}
	token, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return token, nil
}

// logout signs the browser out (OpenID Connect RP-Initiated Logout 1.0) and sends it back to an origin of the client's.
func (p *Provider) logout(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	p.mu.Lock()
	p.journal.counts.Logouts++
	delete(p.sessions, p.browserID(r))
	client := p.clients[q.Get("client_id")]
	p.mu.Unlock()
	target := q.Get("post_logout_redirect_uri")
	u, err := url.Parse(target)
	if err != nil || !slices.ContainsFunc(client.RedirectURIs, func(uri string) bool { return strings.HasPrefix(uri, u.Scheme+"://"+u.Host+"/") }) {
		p.errorPage(w, http.StatusOK, "Signed out", "You are signed out.")
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther) //nolint:gosec // an origin of the client's
}
