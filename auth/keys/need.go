package keys

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// boundTo begins the resource of a slot whose definition names none: the key belongs to the server that it was asked for.
const boundTo = "server:"

// place is the URL at and below which the keys of a slot may be sent.
func place(s auth.Slot) string { return strings.TrimPrefix(s.Resource, boundTo) }

// Host is where the key of a need is sent.
func Host(n auth.Need) string { return where(n.Slot) }

func where(s auth.Slot) string { return discovery.Host(place(s)) }

// aim finds the slot of a want, or says what is wrong with the definition. The credential_key is not in it: a definition that
// names another's key, and its own server, finds nothing.
func aim(owner agent.Owner, want auth.Want) (auth.Slot, error) {
	a := want.Auth
	s := auth.Slot{Owner: owner, Domain: a.Domain, Issuer: a.Issuer, Resource: a.Resource, Client: auth.KeyOf(a).Client()}
	switch {
	case a.Resource != "" && want.Server != "" && !discovery.Covers(a.Resource, want.Server):
		return s, misconfigured("credential %q is for %s and is not sent to %s", a.Key, discovery.Host(a.Resource), discovery.Host(want.Server))
	case a.Resource == "" && want.Server == "":
		return s, misconfigured("credential %q does not say which server it is for", a.Key)
	case a.Resource == "":
		canonical, ok := discovery.Canonical(want.Server)
		if !ok {
			return s, misconfigured("the server of credential %q is no http(s) URL", a.Key)
		}
		canonical, _, _ = strings.Cut(canonical, "?")
		s.Resource = boundTo + canonical
	}
	origin, ok := discovery.Origin(place(s))
	if !ok {
		return s, misconfigured("the resource of credential %q is no http(s) URL", a.Key)
	}
	if s.Issuer == "" {
		s.Issuer = origin
	}
	return s, nil
}

// required asks a person. The client's id is that of the slot, so that what is typed is sealed for the way in which it is sent.
func required(slot auth.Slot, want auth.Want) error {
	return &auth.RequiredError{Need: auth.Need{
		Slot: slot, Key: keyOf(want.Auth, slot), Type: string(want.Auth.Type), Tool: want.Tool, Toolset: want.Toolset, Server: want.Server,
		Refused: want.Refused, Provider: auth.Provider{Issuer: slot.Issuer}, Client: auth.Client{ID: slot.Client}, Typed: auth.KeyOf(want.Auth),
	}}
}

// keyOf is the stable name of a credential: the definition's, or one derived from what makes it this credential.
func keyOf(a agent.Auth, slot auth.Slot) string {
	if a.Key != "" {
		return a.Key
	}
	h := sha256.New()
	for _, part := range []string{slot.Domain, slot.Issuer, slot.Resource, slot.Client} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return "tarry_" + string(a.Type) + "_" + hex.EncodeToString(h.Sum(nil)[:8])
}

// misconfigured makes an error whose text, written by us, tells an operator what to change.
func misconfigured(format string, args ...any) error {
	return fmt.Errorf("%w: %s", auth.ErrMisconfigured, fmt.Sprintf(format, args...))
}
