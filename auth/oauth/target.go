package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// boundTo begins the resource of a slot whose provider knows no resources, or is not told of them (omit_resource): the
// token is tied to the server that it may be sent to, and no resource parameter is sent. Without the tie, a definition could take the key of another one, which
// has the same client, to its own server.
const boundTo = "server:"

// resourceParameter is what is sent as resource (RFC 8707) for a slot's resource; empty means nothing.
func resourceParameter(slotResource string) string {
	if strings.HasPrefix(slotResource, boundTo) {
		return ""
	}
	return slotResource
}

// target is where the credential for a want can be: slots that differ in their resource.
type target struct {
	// explicit credentials are described by their definition, others by the server.
	explicit bool
	domain   string
	// issuer is empty when any will do.
	issuer    string
	resources []string
	// clients are the sources of a client that fit; a definition without one takes what the provider offers.
	clients []string
	// omit keeps the resource parameter to ourselves.
	omit bool
	// app is a credential of the app itself, which no person gives.
	app bool
}

// slotResource is where a slot keeps a resource.
func (t target) slotResource(resource string) string {
	if t.omit && resource != "" {
		return boundTo + resource
	}
	return resource
}

func (t target) slot(owner agent.Owner) auth.Slot {
	return auth.Slot{Owner: owner, Domain: t.domain, Issuer: t.issuer, Resource: t.resources[0], Client: t.clients[0]}
}

// anyClient says whether the definition names no client.
func (t target) anyClient() bool { return len(t.clients) > 1 }

// client is the client that a grant must have for a query, or nothing.
func (t target) client() string {
	if t.anyClient() {
		return ""
	}
	return t.clients[0]
}

// aim finds the target of a want, or says what is wrong with the definition.
func aim(want auth.Want) (target, error) {
	t, err := aimAt(want)
	if !t.omit {
		return t, err
	}
	for i, resource := range t.resources {
		if !strings.HasPrefix(resource, boundTo) {
			t.resources[i] = t.slotResource(resource)
		}
	}
	return t, err
}

func aimAt(want auth.Want) (target, error) {
	a := want.Auth
	t := target{
		domain: a.Domain, issuer: a.Issuer, clients: []string{auth.ClientPreregistered + a.ClientID}, omit: a.OmitResource,
		app: a.Grant == agent.GrantClientCredentials,
	}
	if t.app {
		if a.ClientID == "" || a.ClientSecret == "" && a.PrivateKey == "" {
			return target{}, misconfigured("credential %q is the app's own and has no client_id with client_secret or private_key", a.Key)
		}
		t.clients = []string{auth.ClientOwn + a.ClientID}
	}
	if a.Type == agent.AuthServiceAccount {
		t.app, t.explicit, t.issuer, t.clients = true, true, googleIssuer, []string{serviceAccountSource(a)}
		return t.bind(want)
	}
	if a.Type == "" || a.Type == agent.AuthMCP {
		if a.ClientID == "" {
			t.clients = []string{auth.ClientMetadata, auth.ClientDynamic}
		}
		if t.resources = discovery.Resources(want.Server); len(t.resources) == 0 {
			return target{}, misconfigured("credential %q has no server that could say what it needs", a.Key)
		}
		// A definition may name the resource, but only one that the server may claim for itself.
		if a.Resource != "" {
			if !discovery.Covers(a.Resource, want.Server) {
				return target{}, elsewhere(a, want)
			}
			t.resources = []string{a.Resource}
		}
		return t, nil
	}
	t.explicit = true
	if a.ClientID == "" {
		return target{}, misconfigured("credential %q has no client_id", a.Key)
	}
	if t.issuer == "" {
		label, ok := discovery.Origin(a.TokenURL)
		if !ok {
			return target{}, misconfigured("credential %q has no token endpoint", a.Key)
		}
		t.issuer = label
	}
	return t.bind(want)
}

// bind ties a credential that its definition describes to where its tokens may be sent.
func (t target) bind(want auth.Want) (target, error) {
	a := want.Auth
	switch {
	case a.Resource != "" && want.Server != "" && !discovery.Covers(a.Resource, want.Server):
		return target{}, elsewhere(a, want)
	case a.Resource != "" || want.Server == "":
		t.resources = []string{a.Resource}
	default:
		canonical, ok := discovery.Canonical(want.Server)
		if !ok {
			return target{}, misconfigured("the server of credential %q is no http(s) URL", a.Key)
		}
		canonical, _, _ = strings.Cut(canonical, "?")
		t.resources = []string{boundTo + canonical}
	}
	return t, nil
}

func elsewhere(a agent.Auth, want auth.Want) error {
	return misconfigured("credential %q is for %s and is not sent to %s", a.Key, discovery.Host(a.Resource), discovery.Host(want.Server))
}

// fits compares what is stored with where the token is about to go. The query asked for it already; a token is not sent
// on the strength of one comparison.
func (t target) fits(g Grant, owner agent.Owner, want auth.Want) bool {
	sameSlot := g.Slot.Owner == owner && g.Slot.Domain == t.domain && slices.Contains(t.clients, g.Slot.Client) && (t.issuer == "" || t.issuer == g.Slot.Issuer)
	if !sameSlot {
		return false
	}
	if want.Auth.TokenURL != "" && want.Auth.TokenURL != g.Provider.TokenEndpoint {
		return false // a label that two definitions share does not make their providers one
	}
	if want.Server == "" {
		return t.explicit && g.Slot.Resource == t.resources[0]
	}
	resource := strings.TrimPrefix(g.Slot.Resource, boundTo)
	return discovery.Covers(resource, want.Server)
}

// keyOf is the stable name of a credential: the definition's, or one derived from what makes it this credential. Redirect
// URIs and processes do not change it.
func keyOf(a agent.Auth, slot auth.Slot) string {
	if a.Key != "" {
		return a.Key
	}
	h := sha256.New()
	for _, part := range append([]string{slot.Domain, slot.Issuer, slot.Resource, slot.Client}, auth.Union(a.Scopes)...) {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "tarry_" + typeOf(a) + "_" + hex.EncodeToString(h.Sum(nil)[:8])
}

func typeOf(a agent.Auth) string {
	if a.Type == "" {
		return string(agent.AuthMCP)
	}
	return string(a.Type)
}
