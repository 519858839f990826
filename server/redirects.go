package server

import (
	"context"
	"fmt"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/oauth"
)

// RedirectURI is what an operator registers at a provider for a client of a definition.
type RedirectURI struct {
	App, Issuer, URI string
}

// RedirectURIs lists those of pre-registered clients in published agents. Clients that register themselves need none.
func (s *Server) RedirectURIs(ctx context.Context) ([]RedirectURI, error) {
	apps, err := s.Parts.Store.Apps(ctx)
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	var out []RedirectURI
	for _, def := range apps {
		for node := range def.All() {
			for _, tool := range node.Tools {
				if tool.MCP == nil || tool.MCP.Auth == nil || tool.MCP.Auth.ClientID == "" || tool.MCP.Auth.Grant != "" {
					continue
				}
				if p := providerOf(tool.MCP.Auth); p.Issuer != "" {
					uri := s.PublicURL.JoinPath(oauth.CallbackPath(oauth.CallbackIssuer(p))).String()
					out = append(out, RedirectURI{App: def.App, Issuer: p.Issuer, URI: uri})
				}
			}
		}
	}
	return out, nil
}

// tellRedirectURIs logs each redirect URI once: workers publish agents while the server runs.
func (s *Server) tellRedirectURIs() func(context.Context) error {
	told := map[RedirectURI]bool{}
	return func(ctx context.Context) error {
		uris, err := s.RedirectURIs(ctx)
		for _, u := range uris {
			if !told[u] {
				told[u] = true
				s.Log.InfoContext(ctx, "register this redirect URI at the provider", "app", u.App, "provider", u.Issuer, "redirect_uri", u.URI)
			}
		}
		return err
	}
}

// providerOf is what a definition says of its provider; the rest is found out at the first login.
func providerOf(a *agent.Auth) auth.Provider {
	p := auth.Provider{Issuer: a.Issuer, TokenEndpoint: a.TokenURL, Discovered: a.AuthorizationURL == "" || a.TokenURL == ""}
	if p.Issuer == "" {
		p.Issuer, _ = discovery.Origin(a.TokenURL)
	}
	return p
}
