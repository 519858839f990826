package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tarry/auth"
)

type resourceMetadata struct {
	Resource             string   `json:"resource"`
	AuthorizationServers []string `json:"authorization_servers"`
	ScopesSupported      []string `json:"scopes_supported"`
}

// errNoResource marks that a server has no resource metadata at all, which is not the same as having a wrong one.
var errNoResource = errors.New("no protected resource metadata")

const resourceWellKnown = "/.well-known/oauth-protected-resource"

// resource finds the protected resource metadata: where the challenge says, else inserted before the path, else at the
// root.
func (d *Discoverer) resource(ctx context.Context, server, named string) (resourceMetadata, error) {
	u, ok := parse(server)
	if !ok {
		return resourceMetadata{}, fmt.Errorf("%w: server URL is not http(s)", auth.ErrMisconfigured)
	}
	root := origin(u) + resourceWellKnown
	places := []string{root}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	if path != "" {
		places = []string{root + path, root}
	}
	if u.RawQuery != "" { // RFC 9728 section 3.1; few servers look at it
		places = slices.Insert(places, 0, root+path+"?"+u.RawQuery)
	}
	if named != "" {
		// A document elsewhere could name somebody else's server as ours.
		if o, ok := Origin(named); !ok || o != origin(u) {
			return resourceMetadata{}, fmt.Errorf("%w: %s names resource metadata of another origin", auth.ErrMisconfigured, u.Host)
		}
		places = []string{named}
	}
	for _, place := range places {
		var meta resourceMetadata
		err := d.get(ctx, place, &meta)
		if errors.Is(err, errAbsent) {
			continue
		}
		if err != nil {
			return resourceMetadata{}, err
		}
		return meta, checkResource(meta, server, place == root || place == root+"/")
	}
	return resourceMetadata{}, fmt.Errorf("%w: %s asks for a login but has %w; write its provider's endpoints into the definition "+
		"(type oauth2), or legacy_authorization: true under tarry if it is its own provider", auth.ErrMisconfigured, u.Host, errNoResource)
}

// checkResource is RFC 9728 section 3.3: a document speaks for the URL that it belongs to, or, at the root, for the
// whole origin.
func checkResource(meta resourceMetadata, server string, root bool) error {
	u, _ := parse(server)
	fits := slices.Contains(Resources(server), meta.Resource)
	if fits && !root && u.EscapedPath() != "" && u.EscapedPath() != "/" && sameBut(meta.Resource, origin(u)) {
		fits = false
	}
	switch {
	case !fits:
		return fmt.Errorf("%w: the resource metadata of %s is about another resource", auth.ErrMisconfigured, u.Host)
	case len(meta.AuthorizationServers) == 0:
		return fmt.Errorf("%w: the resource metadata of %s names no authorization server", auth.ErrMisconfigured, u.Host)
	}
	return nil
}
