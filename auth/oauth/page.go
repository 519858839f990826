package oauth

import (
	"context"
	"fmt"

	"tarry/auth"
	"tarry/auth/discovery"
)

// Page is what a person is shown before a login.
type Page struct {
	Request auth.Request
	// ProviderHost is where the browser will be sent, ServerHost where the token will go; empty for tools without a server.
	ProviderHost string
	ServerHost   string
	Scopes       []string
	// New are those of Scopes that the app was not granted yet.
	New     []string
	App     string
	Agent   string
	Tool    string
	Toolset string
	Status  auth.Status
}

// Page describes a request and changes nothing.
func (s *Service) Page(ctx context.Context, access auth.Access, requestID string) (Page, error) {
	r, err := s.cfg.Store.Request(ctx, requestID, access)
	if err != nil {
		return Page{}, fmt.Errorf("connect page: %w", err)
	}
	n := r.Need
	p := Page{
		Request: r, ProviderHost: discovery.Host(n.Provider.AuthorizationEndpoint), Scopes: n.Scopes, New: n.Scopes,
		App: r.Owner.App, Agent: r.Agent, Tool: n.Tool, Toolset: n.Toolset, Status: r.Status,
	}
	if n.Server != "" {
		p.ServerHost = discovery.Host(n.Server)
	}
	grants, err := s.cfg.Store.Grants(ctx, GrantQuery{
		Owner: n.Slot.Owner, Domain: n.Slot.Domain, Issuer: n.Slot.Issuer, Resource: n.Slot.Resource, Client: n.Slot.Client,
	})
	if err != nil {
		return Page{}, fmt.Errorf("connect page: %w", err)
	}
	if len(grants) > 0 {
		p.New = without(n.Scopes, grants[0].Scopes)
	}
	return p, nil
}
