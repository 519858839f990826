package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"tarry/agent"
)

// Key is a credential that a person types in, without the value: what it is and how it is sent. It is a security scheme apiKey
// or http of OpenAPI 3.
type Key struct {
	// In and Name are where an API key goes; empty for credentials of HTTP's own schemes.
	In   string `json:"in,omitempty"`
	Name string `json:"name,omitempty"`
	// Scheme is that of the header Authorization; empty for API keys.
	Scheme string `json:"scheme,omitempty"`
}

// KeyValue is what a person typed in. Username is for HTTP basic authentication only.
type KeyValue struct {
	Username Secret
	Secret   Secret
}

// KeyOf returns how the credential of a definition is sent; nil for those that no person types in.
func KeyOf(a agent.Auth) *Key {
	if !a.Typed() {
		return nil
	}
	return &Key{In: a.In, Name: a.Name, Scheme: a.Scheme}
}

// Basic says whether there is a user name beside the secret.
func (k Key) Basic() bool { return k.Scheme == agent.SchemeBasic }

// Client is what a [Slot] has in the place of a client: a key that is sent in one way is not found by whoever sends it in
// another.
func (k Key) Client() string {
	switch k.In {
	case "":
		return ClientKey + k.Scheme
	case agent.InHeader:
		return ClientKey + k.In + ":" + strings.ToLower(k.Name)
	}
	return ClientKey + k.In + ":" + k.Name
}

// Put sets the credential on a request in the way that its definition says: an access token as a bearer token (RFC 6750 section
// 2.1). The caller has made sure that the request goes to the server that the credential is for.
//
// A client that follows redirects must not do so with an API key: package net/http takes Authorization and Cookie off where a
// redirect leads to another host, but no other header, and the query is part of the address.
func (t AccessToken) Put(req *http.Request, a agent.Auth) {
	switch {
	case t.Access.IsZero() && t.Username.IsZero():
	case a.Type == agent.AuthHTTP && a.Scheme == agent.SchemeBasic:
		req.SetBasicAuth(t.Username.Reveal(), t.Access.Reveal())
	case a.Type != agent.AuthAPIKey:
		req.Header.Set("Authorization", "Bearer "+t.Access.Reveal())
	case a.In == agent.InHeader:
		req.Header.Set(a.Name, t.Access.Reveal())
	case a.In == agent.InCookie:
		putCookie(req, a.Name, t.Access)
	case a.In == agent.InQuery:
		putQuery(req, a.Name, t.Access)
	}
}

// putQuery replaces a parameter of the name; the others stay as they are written.
func putQuery(req *http.Request, name string, value Secret) {
	to := *req.URL
	var parts []string
	for part := range strings.SplitSeq(to.RawQuery, "&") {
		key, _, _ := strings.Cut(part, "=")
		if known, err := url.QueryUnescape(key); part != "" && (err != nil || known != name) {
			parts = append(parts, part)
		}
	}
	to.RawQuery = strings.Join(append(parts, url.QueryEscape(name)+"="+url.QueryEscape(value.Reveal())), "&")
	req.URL = &to
}

// putCookie replaces a cookie of the name; the others stay.
func putCookie(req *http.Request, name string, value Secret) {
	others := req.Cookies()
	req.Header.Del("Cookie")
	for _, c := range others {
		if c.Name != name {
			req.AddCookie(c)
		}
	}
	req.AddCookie(&http.Cookie{Name: name, Value: value.Reveal()}) //nolint:gosec // attributes are for browsers; a client sends none
}

// Authorize puts the credential that the running Go tool declares under key on a request, in the way that its definition
// says. It refuses requests that go elsewhere than to the resource that the definition names. Errors are those of [Token]; after
// an answer with HTTP 401 the tool calls [Refused] with the token that is returned.
func Authorize(ctx context.Context, key string, req *http.Request) (AccessToken, error) {
	t, a, err := declared(ctx, key)
	if err != nil {
		return AccessToken{}, err
	}
	want := Want{Auth: a, Tool: t.tool}
	if a.Resource != "" {
		to := *req.URL
		to.RawQuery, to.Fragment = "", "" // they may hold what is nobody's business
		want.Server = to.String()
	}
	token, err := t.broker.Token(ctx, want)
	if err != nil {
		return AccessToken{}, fmt.Errorf("token %s: %w", key, err)
	}
	token.Put(req, a)
	return token, nil
}

// declared finds a credential of the running tool.
func declared(ctx context.Context, key string) (toolAuth, agent.Auth, error) {
	t, ok := ctx.Value(brokerKey{}).(toolAuth)
	if !ok {
		return t, agent.Auth{}, fmt.Errorf("%w: not inside a tool call", ErrNotDeclared)
	}
	for _, a := range t.declared {
		if a.Key == key {
			return t, a, nil
		}
	}
	return t, agent.Auth{}, fmt.Errorf("%w: %q", ErrNotDeclared, key)
}
