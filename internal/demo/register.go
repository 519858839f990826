package demo

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// registration is request and answer of RFC 7591.
type registration struct {
	ClientID        string   `json:"client_id,omitempty"`
	ClientSecret    string   `json:"client_secret,omitempty"`
	IssuedAt        int64    `json:"client_id_issued_at,omitempty"`
	SecretExpiresAt *int64   `json:"client_secret_expires_at,omitempty"`
	RedirectURIs    []string `json:"redirect_uris"`
	Name            string   `json:"client_name,omitempty"`
	AuthMethod      string   `json:"token_endpoint_auth_method,omitempty"`
	GrantTypes      []string `json:"grant_types,omitempty"`
	ResponseTypes   []string `json:"response_types,omitempty"`
	ApplicationType string   `json:"application_type,omitempty"`
	Scope           string   `json:"scope,omitempty"`
}

func (p *Provider) register(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.journal.counts.Registrations++
	off := p.faults.NoRegistration
	p.mu.Unlock()
	if off {
		http.NotFound(w, r)
		return
	}
	var reg registration
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&reg); err != nil {
		refuseRegistration(w, "invalid_client_metadata", "body is not JSON")
		return
	}
	if code, why := checkRegistration(&reg); code != "" {
		refuseRegistration(w, code, why)
		return
	}

	p.mu.Lock()
	reg.ClientID = "dyn-" + randomID()
	reg.IssuedAt = p.now().Unix()
	if reg.AuthMethod != AuthNone {
		reg.ClientSecret = p.mint("cs")
		reg.SecretExpiresAt = new(int64) // never
		p.journal.secrets.ClientSecrets = append(p.journal.secrets.ClientSecrets, reg.ClientSecret)
	}
	p.clients[reg.ClientID] = Client{
		ID: reg.ClientID, Secret: reg.ClientSecret, Name: reg.Name, AuthMethod: reg.AuthMethod,
		RedirectURIs: reg.RedirectURIs, GrantTypes: reg.GrantTypes,
	}
	p.mu.Unlock()
	writeJSON(w, http.StatusCreated, reg)
}

// checkRegistration fills in the defaults of RFC 7591 section 2 and returns the error code and text of a bad request.
func checkRegistration(reg *registration) (code, why string) {
	if reg.AuthMethod == "" {
		reg.AuthMethod = AuthBasic
	}
	if len(reg.GrantTypes) == 0 {
		reg.GrantTypes = []string{grantCode}
	}
	if len(reg.ResponseTypes) == 0 {
		reg.ResponseTypes = []string{"code"}
	}
	switch {
	case !slices.Contains([]string{AuthNone, AuthBasic, AuthPost}, reg.AuthMethod):
		return "invalid_client_metadata", "unknown token_endpoint_auth_method"
	case !slices.Contains(reg.GrantTypes, grantCode) || !slices.Contains(reg.ResponseTypes, "code"):
		return "invalid_client_metadata", "the authorization code grant is needed"
	case len(reg.RedirectURIs) == 0:
		return "invalid_redirect_uri", "redirect_uris is empty"
	case !slices.Contains([]string{"", "web", "native"}, reg.ApplicationType):
		return "invalid_client_metadata", "unknown application_type"
	}
	for _, raw := range reg.RedirectURIs {
		u, err := url.Parse(raw)
		switch {
		case err != nil || u.Host == "" || u.Fragment != "" || strings.HasSuffix(raw, "#"):
			return "invalid_redirect_uri", "redirect URI is not an absolute URL without fragment"
		case u.Scheme == "https":
		case u.Scheme != "http" || !isLoopback(u.Hostname()):
			return "invalid_redirect_uri", "redirect URI is neither https nor loopback"
		case reg.ApplicationType == "web":
			return "invalid_redirect_uri", "loopback needs application_type native"
		}
	}
	return "", ""
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

func refuseRegistration(w http.ResponseWriter, code, why string) {
	note(w, nil, code)
	writeJSON(w, http.StatusBadRequest, map[string]string{"error": code, "error_description": why})
}

// until returns the whole seconds from now to t, at least 0.
func until(now, t time.Time) int64 {
	return max(0, int64(t.Sub(now)/time.Second))
}
