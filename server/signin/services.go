package signin

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"tarry/agent"
)

// Service is an application that has users of its own and acts for them. Its users are no people of ours: their ids begin
// with the service's name and a colon, which no id of a person does, nor that of another service's user.
type Service struct {
	// Name is one to 24 lower-case letters, digits and hyphens, beginning with a letter.
	Name string `yaml:"name"`
	// Issuer signs the service's tokens.
	Issuer string `yaml:"issuer"`
	// Subject is the sub of its tokens. Either this or ClientID must be set.
	Subject string `yaml:"subject"`
	// ClientID is the client_id of its tokens, which must be their sub too: a token that the client got for a person has the
	// client's id as well, but is that person's (RFC 9068 section 2.2).
	ClientID string `yaml:"client_id"`
	// Apps are those in which it may act.
	Apps []string `yaml:"apps"`
	// ReturnURL is where browsers of its users go after a login, to be checked: https, or http on loopback. Empty: its users
	// cannot log in to tools.
	ReturnURL string `yaml:"return_url"`
}

const userSeparator = ":"

// Prefix begins the ids of the service's users.
func (s Service) Prefix() string { return s.Name + userSeparator }

// Owns says whether an owner is a user of the service, in an app in which it may act.
func (s Service) Owns(o agent.Owner) bool {
	rest, ok := strings.CutPrefix(o.User, s.Prefix())
	return ok && rest != "" && slices.Contains(s.Apps, o.App)
}

func (s Service) is(c claims) bool {
	switch {
	case c.Issuer != s.Issuer:
		return false
	case s.Subject != "":
		return c.Subject == s.Subject
	default:
		return c.clientID == s.ClientID && c.Subject == s.ClientID
	}
}

func (s Service) principal(c claims) Principal {
	p := NewPrincipal(s.Name, UserID(c.Issuer, c.Subject), s.Owns)
	p.Mode, p.Service = ModeJWT, s.Name
	return p
}

func checkServices(all []Service) error {
	name := regexp.MustCompile(`^[a-z][a-z0-9-]{0,23}$`)
	seen := map[string]bool{}
	var errs []error
	for i, s := range all {
		complain := func(field, mend string) {
			errs = append(errs, fmt.Errorf("service %d (%q): %s: %s", i+1, s.Name, field, mend))
		}
		switch {
		case !name.MatchString(s.Name):
			complain("name", "must be one to 24 lower-case letters, digits and hyphens, beginning with a letter")
		case strings.HasPrefix(s.Name, personPrefix) || s.Name == Me:
			complain("name", "is reserved; choose another")
		case seen[s.Name]:
			complain("name", "stands twice; each service needs one of its own")
		}
		seen[s.Name] = true
		if s.Issuer == "" {
			complain("issuer", "is missing; write the iss of the service's tokens, one of TARRY_JWT_ISSUERS")
		}
		if (s.Subject == "") == (s.ClientID == "") {
			complain("subject", "write either subject or client_id, as the service's tokens have it")
		}
		if len(s.Apps) == 0 {
			complain("apps", "is empty; list the apps in which the service may act")
		}
		if s.ReturnURL != "" && !returnAddress(s.ReturnURL) {
			complain("return_url", "must be an https address (http on loopback only) without user, query and fragment")
		}
	}
	return errors.Join(errs...)
}

func returnAddress(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && loopbackName(u.Hostname())
}
