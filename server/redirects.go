package server

import (
	"context"
	"fmt"
	"net/url"

	"tarry/agent"
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
				if tool.MCP == nil || tool.MCP.Auth == nil || tool.MCP.Auth.ClientID == "" {
					continue
				}
				if issuer := issuerOf(tool.MCP.Auth); issuer != "" {
					out = append(out, RedirectURI{App: def.App, Issuer: issuer, URI: s.PublicURL.JoinPath(oauth.CallbackPath(issuer)).String()})
				}
			}
		}
	}
	return out, nil
}

func issuerOf(a *agent.Auth) string {
	if a.Issuer != "" || a.TokenURL == "" {
		return a.Issuer
	}
	u, err := url.Parse(a.TokenURL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
