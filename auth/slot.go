package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"tarry/agent"
)

// Slot is where one credential of one person lives. Scopes and the actual client id are attributes of the grant inside.
type Slot struct {
	Owner agent.Owner `json:"owner"`
	// Domain separates agents that want credentials of their own; usually empty.
	Domain string `json:"domain,omitempty"`
	Issuer string `json:"issuer"`
	// Resource is what the token is for; empty for providers that know no resources.
	Resource string `json:"resource,omitempty"`
	// Client says where the client comes from: a [ClientSource] and, for a pre-registered one, its id.
	Client string `json:"client"`
}

// Sources of an OAuth client.
const (
	ClientPreregistered = "pre:"     // followed by the client id
	ClientOwn           = "app:"     // followed by the client id: the app's own credential, not a person's
	ClientMetadata      = "metadata" // our metadata document, whose URL is the id everywhere
	ClientDynamic       = "dynamic"  // registered by ourselves, one for each provider and redirect URI
	ClientKey           = "key:"     // no client: how a key that a person typed is sent follows, see [Key]
)

// ID is a digest of the slot, with length-prefixed parts: two slots never share one.
func (s Slot) ID() string {
	h := sha256.New()
	for _, part := range []string{s.Owner.App, s.Owner.User, s.Domain, s.Issuer, s.Resource, s.Client} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Covers says whether granted scopes meet a need for wanted ones.
func Covers(granted, wanted []string) bool {
	for _, scope := range wanted {
		if !slices.Contains(granted, scope) {
			return false
		}
	}
	return true
}

// Union merges scopes, sorted, each once.
func Union(sets ...[]string) []string {
	out := slices.Concat(sets...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Access says whether the caller may act for an owner. Store calls that find a row by an id that a person was handed,
// such as a login link's, take one and answer as if the row did not exist when it says no.
type Access func(agent.Owner) bool
