package signin

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"tarry/auth"
)

// ModeJWT is the mode of [JWT].
const ModeJWT = "jwt"

// maxBearer bounds a token, in bytes.
const maxBearer = 16 << 10

// JWT takes access tokens that are signed JSON Web Tokens (RFC 9068), from the Authorization header alone (RFC 6750
// section 2.1).
type JWT struct {
	// Issuers may sign tokens. Their keys are found by discovery.
	Issuers []string
	// Audiences are what a token may be for; it must name one. An audience must be no client id, or ID tokens would do.
	Audiences []string
	// Allow says whose tokens are taken, by their claims; services are known by name and need no rule. nil: everybody's, since an
	// issuer gives out tokens for these audiences to those alone who may call.
	Allow Allow
	// HTTP fetches metadata and keys.
	HTTP *http.Client
	// Now is for tests; nil is the clock.
	Now func() time.Time
}

// Algorithms are those that a signature may have: asymmetric ones alone, since a key that verifies must not be able to sign.
func Algorithms() []string {
	return []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.EdDSA}
}

// claims are those of a token that has been verified.
type claims struct {
	auth.Person

	clientID string
	// allowed says that the token is one of a person who may come in.
	allowed bool
}

var errToken = errors.New("token is not valid")

// bearer verifies tokens.
type bearer struct {
	JWT

	issuers map[string]*issuer
}

func newBearer(c JWT) *bearer {
	b := &bearer{JWT: c, issuers: map[string]*issuer{}}
	for _, name := range c.Issuers {
		b.issuers[name] = newIssuer(name, c.HTTP)
	}
	return b
}

// verify returns whom a token is about. Its errors hold nothing of the token but names of claims, which are bounded.
func (b *bearer) verify(ctx context.Context, token string) (claims, error) {
	head, name, err := unverified(token)
	if err != nil {
		return claims{}, err
	}
	// Without typ, or with that of a JWT, audience and algorithm decide; any other says that it is no access token.
	if typ := strings.ToLower(head.Type); !slices.Contains([]string{"", "jwt", "at+jwt", "application/at+jwt"}, typ) {
		return claims{}, fmt.Errorf("%w: typ is not that of an access token", errToken)
	}
	from, ok := b.issuers[name]
	if !ok {
		return claims{}, fmt.Errorf("%w: issuer is not one of TARRY_JWT_ISSUERS", errToken)
	}
	found, err := from.discover(ctx)
	if err != nil {
		return claims{}, err
	}
	verified, err := found.Verifier(&oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: Algorithms(), Now: b.Now}).Verify(ctx, token)
	if err != nil {
		return claims{}, fmt.Errorf("%w: %s", errToken, brief(err))
	}
	if !slices.ContainsFunc(verified.Audience, func(a string) bool { return slices.Contains(b.Audiences, a) }) {
		return claims{}, fmt.Errorf("%w: audience is not one of TARRY_JWT_AUDIENCE", errToken)
	}
	var more struct {
		ClientID string `json:"client_id"`
		Name     string `json:"name"`
		Username string `json:"preferred_username"`
	}
	all := map[string]any{}
	if err := errors.Join(verified.Claims(&more), verified.Claims(&all)); err != nil || verified.Subject == "" || len(verified.Subject) > maxName {
		return claims{}, fmt.Errorf("%w: claims do not fit", errToken)
	}
	return claims{
		Person:   auth.Person{Issuer: name, Subject: verified.Subject, Name: firstOf(more.Name, more.Username, verified.Subject)},
		clientID: more.ClientID, allowed: b.Allow == nil || b.Allow.permits(all),
	}, nil
}

type header struct {
	Type string `json:"typ"`
}

// unverified reads which issuer's keys a token is to be checked with.
func unverified(token string) (head header, issuer string, err error) {
	malformed := fmt.Errorf("%w: malformed", errToken)
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxBearer {
		return head, "", malformed
	}
	var body struct {
		Issuer string `json:"iss"`
	}
	for i, into := range []any{&head, &body} {
		raw, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(raw, into) != nil {
			return head, "", malformed
		}
	}
	return head, body.Issuer, nil
}

// bearerToken returns the token of the Authorization header; false when there is no such header. A header of another scheme
// has an empty token.
func bearerToken(r *http.Request) (string, bool) {
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return "", false
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") {
		return "", true
	}
	return strings.TrimSpace(token), true
}

// firstOf is the first text that is there, and short enough to be shown.
func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" && len(text) <= maxName {
			return text
		}
	}
	return ""
}

// maxBrief bounds what a library may say into the log, in bytes: a part of it is the caller's.
const maxBrief = 200

func brief(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxBrief)], "")
}
