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
	// Runs is how many sessions wait behind the link, Askers what asks in them, each once, the oldest first.
	Runs   int
	Askers []Asker
	// Device is the code to take to another device, nil when none is under way; ByDevice says that pressing the button gets one.
	Device   *DeviceCode
	ByDevice bool
	// Shown is the newest request among them, for [Service.Begin].
	Shown string
}

// Asker is what needs a login.
type Asker struct{ Agent, Tool, Toolset string }

// Page describes what is behind a link and changes nothing. A request that has ended gives its place to the next one that
// shares its link.
func (s *Service) Page(ctx context.Context, access auth.Access, requestID string) (Page, error) {
	behind, err := s.cfg.Store.Behind(ctx, requestID, access)
	if err != nil {
		return Page{}, fmt.Errorf("connect page: %w", err)
	}
	r := behind[0]
	if front, err := s.frontOf(behind); err == nil {
		r = front
	}
	n := r.Need
	p := Page{
		Request: r, ProviderHost: discovery.Host(n.Provider.AuthorizationEndpoint), Scopes: n.Scopes, New: n.Scopes,
		App: r.Owner.App, Agent: r.Agent, Tool: n.Tool, Toolset: n.Toolset, Status: r.Status,
	}
	p.Runs, p.Askers = Asking(behind)
	p.Shown = behind[len(behind)-1].ID
	if n.Device {
		p.ByDevice, p.ProviderHost = true, discovery.Host(n.Provider.DeviceEndpoint)
		if p.Device, err = s.deviceCode(ctx, r); err != nil {
			return Page{}, fmt.Errorf("connect page: %w", err)
		}
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

// Asking counts the sessions of requests and lists what asks in them, each once.
func Asking(behind []auth.Request) (runs int, askers []Asker) {
	sessions, known := map[string]bool{}, map[Asker]bool{}
	for _, r := range behind {
		a := Asker{Agent: r.Agent, Tool: r.Need.Tool, Toolset: r.Need.Toolset}
		if !known[a] {
			askers = append(askers, a)
		}
		sessions[r.WorkflowID], known[a] = true, true
	}
	return len(sessions), askers
}
