package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	// assertionLife is how long an assertion is good for: long enough for clocks that differ by minutes.
	assertionLife = 5 * time.Minute
	// minRSA is what RFC 7518 section 3.3 asks of RSA keys, in bits.
	minRSA = 2048
)

// assert proves a client with its private key (RFC 7523 section 2.2): each request gets an assertion of its own, made for the
// one server that it is sent to.
func assert(p auth.Provider, c auth.Client, key auth.Secret, endpoint string, form url.Values, now time.Time) error {
	audience, err := assertionAudience(p, c, endpoint)
	if err != nil {
		return err
	}
	signer, err := assertionSigner(p, c, key)
	if err != nil {
		return err
	}
	id, err := randomText()
	if err != nil {
		return err
	}
	raw, err := jwt.Signed(signer).Claims(jwt.Claims{
		Issuer: c.ID, Subject: c.ID, ID: id, IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(assertionLife)),
	}).Claims(map[string]any{"aud": audience}).Serialize() // one string: some servers take a list for several audiences
	if err != nil {
		return misconfigured("the private key of client %q cannot sign", c.ID)
	}
	form.Set("client_assertion_type", assertionType)
	form.Set("client_assertion", raw)
	return nil
}

// assertionAudience is the issuer, alone, as draft-ietf-oauth-rfc7523bis has it: a server that a client uses by mistake or
// against its will cannot present the assertion to another one. Only a definition can make it the
// token endpoint, by naming no issuer or by saying so, and then nothing is sent to any other origin.
func assertionAudience(p auth.Provider, c auth.Client, endpoint string) (string, error) {
	if c.Audience == "" {
		return p.Issuer, nil
	}
	home, known := discovery.Origin(p.TokenEndpoint)
	there, ok := discovery.Origin(endpoint)
	if !known || !ok || there != home {
		return "", misconfigured("an assertion for the token endpoint on %s is not sent to %s: name the provider's issuer under tarry",
			discovery.Host(p.TokenEndpoint), discovery.Host(endpoint))
	}
	return p.TokenEndpoint, nil
}

func assertionSigner(p auth.Provider, c auth.Client, key auth.Secret) (jose.Signer, error) {
	bad := func(why string) (jose.Signer, error) {
		return nil, misconfigured("the private key of client %q %s", c.ID, why)
	}
	jwk, err := parsePrivateKey(key)
	if err != nil {
		return bad(err.Error())
	}
	alg, why := assertionAlg(jwk, p.AssertionAlgs)
	if why != "" {
		return bad(why)
	}
	if jwk.KeyID == "" {
		jwk.KeyID = c.KeyID
	}
	options := &jose.SignerOptions{}
	if jwk.KeyID != "" {
		options.WithHeader("kid", jwk.KeyID)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jwk.Key}, options)
	if err != nil {
		return bad("cannot sign with " + string(alg))
	}
	return signer, nil
}

// Errors of a key say what to change and nothing of the key.
var (
	errNoKey      = errors.New("is neither PEM (PKCS #8, PKCS #1, SEC 1) nor a JWK")
	errPublicKey  = errors.New("is a public key; give the private one")
	errLockedKey  = errors.New("is encrypted; give it without a passphrase, the secret store protects it")
	errShortRSA   = errors.New("is an RSA key of less than 2048 bits; make a new one")
	errOtherKey   = errors.New("is neither RSA, EC (P-256, P-384, P-521) nor Ed25519")
	errManyBlocks = errors.New("holds more than one PEM block; leave only the key")
)

func parsePrivateKey(secret auth.Secret) (jose.JSONWebKey, error) {
	var out jose.JSONWebKey
	text := strings.TrimSpace(secret.Reveal())
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return jose.JSONWebKey{}, errNoKey
		}
	} else {
		key, err := parsePEM([]byte(text))
		if err != nil {
			return jose.JSONWebKey{}, err
		}
		out.Key = key
	}
	switch key := out.Key.(type) {
	case *rsa.PrivateKey:
		if key.N.BitLen() < minRSA {
			return jose.JSONWebKey{}, errShortRSA
		}
	case *ecdsa.PrivateKey, ed25519.PrivateKey:
	case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		return jose.JSONWebKey{}, errPublicKey
	default:
		return jose.JSONWebKey{}, errOtherKey
	}
	return out, nil
}

func parsePEM(text []byte) (any, error) {
	block, rest := pem.Decode(text)
	if block != nil && block.Type == "EC PARAMETERS" { // openssl ecparam -genkey writes them first
		block, rest = pem.Decode(rest)
	}
	switch {
	case block == nil:
		return nil, errNoKey
	case len(strings.TrimSpace(string(rest))) > 0:
		return nil, errManyBlocks
	case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
		return nil, errLockedKey
	case strings.HasSuffix(block.Type, "PUBLIC KEY") || block.Type == "CERTIFICATE":
		return nil, errPublicKey
	}
	if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	return nil, errNoKey
}

// assertionAlg is the algorithm that the JWK names, else the one that its type has; for RSA keys, which have two, RS256 as long
// as the provider does not say that it takes PS256 only.
func assertionAlg(key jose.JSONWebKey, supported []string) (alg jose.SignatureAlgorithm, why string) {
	fitting := algsOf(key.Key)
	if key.Algorithm != "" {
		alg = jose.SignatureAlgorithm(key.Algorithm)
		if !slices.Contains(fitting, alg) {
			return "", "names an alg that it is not for"
		}
		return alg, ""
	}
	if len(fitting) == 0 {
		return "", errOtherKey.Error()
	}
	for _, alg := range fitting {
		if len(supported) == 0 || slices.Contains(supported, string(alg)) {
			return alg, ""
		}
	}
	return "", "is of a kind that the provider does not take; it takes " + shorten(supported)
}

func algsOf(key any) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return []jose.SignatureAlgorithm{jose.RS256, jose.PS256, jose.RS384, jose.PS384, jose.RS512, jose.PS512}
	case ed25519.PrivateKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	}
	return nil
}

// clientOf is how a definition's client is known.
func clientOf(a agent.Auth) auth.Client {
	if a.PrivateKey != "" && a.Issuer == "" && a.TokenURL != "" {
		a.AssertionAudience = agent.AudienceTokenEndpoint // what stands for the issuer is a label that we made up
	}
	return auth.Client{ID: a.ClientID, Secret: a.ClientSecret, Auth: a.ClientAuth, Key: a.PrivateKey, KeyID: a.PrivateKeyID, Audience: a.AssertionAudience}
}

// unknownClient is what an operator is told of invalid_client.
func unknownClient(provider string, c auth.Client) error {
	if c.Auth != authKey {
		return misconfigured("%s does not know client %q or its secret", provider, c.ID)
	}
	return misconfigured("%s does not know client %q or takes nothing that its private key signs: register the public key there, "+
		"and compare private_key_id, and assertion_audience under tarry, with what it expects", provider, c.ID)
}
