package oauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"tarry/auth"
	"tarry/auth/discovery"
)

// MetadataPath is where the server has the client's metadata document.
const MetadataPath = "/oauth/client-metadata.json"

// NoMetadataURL switches the metadata document off where its default address would be used.
const NoMetadataURL = "none"

const (
	// maxDocument is what authorization servers take: the draft has them stop at 5 KB.
	maxDocument = 5000
	// maxCallbacks is more than fit into maxDocument.
	maxCallbacks = 100
)

// MetadataURL settles [Config.ClientMetadataURL]: what is configured; else the document below the public URL if that is
// https, which the specification wants; else, and for "none", nothing. loopback permits plain http to this machine.
func MetadataURL(configured string, public *url.URL, loopback bool) (string, error) {
	switch {
	case configured == NoMetadataURL, configured == "" && (public == nil || public.Scheme != "https"):
		return "", nil
	case configured == "":
		return publicAddress(public) + MetadataPath, nil
	}
	u, err := url.Parse(configured)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback || !discovery.IsLoopback(u.Hostname())):
		return "", fmt.Errorf("%q is not an https URL; write the address at which providers find %s, or none", configured, MetadataPath)
	case u.User != nil || strings.ContainsAny(configured, "?#"):
		return "", fmt.Errorf("%q has a user name, query or fragment; remove it", u.Redacted())
	case strings.Trim(u.Path, "/") == "" || hasDots(u.Path):
		return "", fmt.Errorf("%q must have a path, without dot segments; write the address at which providers find %s", configured, MetadataPath)
	}
	return configured, nil
}

func hasDots(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if part == "." || part == ".." {
			return true
		}
	}
	return false
}

// ownClient picks how a provider knows us when the definition names no client: by the metadata document, else by
// registration (MCP authorization, "Client Registration Approaches").
func (s *Service) ownClient(p auth.Provider) (c auth.Client, source string, err error) {
	host := discovery.Host(p.Issuer)
	switch {
	case p.ClientMetadata && s.cfg.ClientMetadataURL != "":
		c, err = s.documentClient()
		return c, auth.ClientMetadata, err
	case p.RegistrationEndpoint != "":
		return auth.Client{}, auth.ClientDynamic, nil
	case p.ClientMetadata:
		return c, "", misconfigured("%s knows clients by their metadata document only, and Tarry has none: give TARRY_PUBLIC_URL or TARRY_CLIENT_METADATA_URL "+
			"an https address that %s can reach, or register Tarry there by hand and put its client_id into the definition", host, host)
	}
	return c, "", misconfigured("%s does not register clients by itself: register Tarry there by hand and put its client_id into the definition", host)
}

// documentClient has nothing to prove itself with but its redirect URIs, and says so: a method that is left open would be
// guessed, and a wrong guess spends the code.
func (s *Service) documentClient() (auth.Client, error) {
	if s.cfg.ClientMetadataURL == "" {
		return auth.Client{}, misconfigured("the worker found a metadata document and the server has none: set TARRY_CLIENT_METADATA_URL for both")
	}
	return auth.Client{ID: s.cfg.ClientMetadataURL, Auth: authNone}, nil
}

// document is the client's metadata (draft-ietf-oauth-client-id-metadata-document, section 4; RFC 7591 section 2).
type document struct {
	ClientID        string   `json:"client_id"`
	Name            string   `json:"client_name"`
	URI             string   `json:"client_uri,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	ApplicationType string   `json:"application_type"`
	Auth            string   `json:"token_endpoint_auth_method"`
}

// MetadataDocument is what authorization servers are told of us: nothing that belongs to a person, and the redirect URIs
// of the providers that know us by it, last used first, as many as fit. Without [Config.ClientMetadataURL] it is the
// document as it would be at the public URL, which no provider is told of.
func (s *Service) MetadataDocument(ctx context.Context) ([]byte, error) {
	digests, err := s.cfg.Store.Callbacks(ctx, maxCallbacks)
	if err != nil {
		return nil, fmt.Errorf("list redirect URIs: %w", err)
	}
	base := publicAddress(s.cfg.PublicURL)
	d := document{
		ClientID: s.cfg.ClientMetadataURL, Name: s.cfg.ClientName, RedirectURIs: []string{},
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		ApplicationType: applicationType(base), Auth: authNone,
	}
	if s.cfg.PublicURL.Scheme == "https" {
		d.URI = base // providers refuse a document with another scheme here
	}
	if d.ClientID == "" {
		d.ClientID = base + MetadataPath
	}
	out, err := json.Marshal(d)
	for _, digest := range digests {
		if err != nil {
			break
		}
		d.RedirectURIs = append(d.RedirectURIs, base+callbackPath+digest)
		var longer []byte
		if longer, err = json.Marshal(d); len(longer) > maxDocument {
			break
		}
		out = longer
	}
	if err != nil {
		return nil, fmt.Errorf("encode client metadata: %w", err)
	}
	return out, nil
}

// publicAddress is the public URL without a slash at its end.
func publicAddress(u *url.URL) string {
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+u.EscapedPath(), "/")
}
