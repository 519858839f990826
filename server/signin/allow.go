package signin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Allow says who of those that an issuer knows may use this server: whoever one of the rules fits. Many issuers know anybody who
// has made an account there. The zero value lets nobody in.
type Allow []rule

// rule is everybody, a verified address, a domain of such addresses, or a claim with a value.
type rule struct {
	claim, value string
}

const (
	everybody    = "*"
	emailClaim   = "email"
	emailChecked = "email_verified"
)

// errNotAllowed: the issuer has said who it is, and no rule lets them in.
var errNotAllowed = errors.New("no rule lets this person in")

// ParseAllow reads rules: "*" for everybody, "ann@example.com" for one address, "@example.com" for all addresses of a domain,
// "claim=value" for a claim that is the value or a list that has it. Addresses count only if the issuer says that it has checked
// them.
func ParseAllow(texts []string) (Allow, error) {
	var out Allow
	var errs []error
	for _, text := range texts {
		r, err := parseRule(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%q %w", text, err))
			continue
		}
		out = append(out, r)
	}
	return out, errors.Join(errs...)
}

func parseRule(text string) (rule, error) {
	claim, value, isClaim := strings.Cut(text, "=")
	switch {
	case text == everybody:
		return rule{claim: everybody}, nil
	case isClaim && (claim == "" || value == ""):
		return rule{}, errors.New("is no rule; write claim=value")
	case isClaim && (claim == emailClaim || claim == emailChecked):
		return rule{}, errors.New("would believe addresses that nobody has checked; write the address alone, or @ and its domain")
	case isClaim && slices.Contains(chosen(), claim):
		return rule{}, fmt.Errorf("goes by %s, which people choose for themselves; use a claim that the issuer gives, such as groups", claim)
	case isClaim:
		return rule{claim: claim, value: value}, nil
	}
	local, domain, ok := splitAddress(text)
	if at := strings.HasPrefix(text, "@"); !ok || at != (local == "") || !strings.Contains(domain, ".") {
		return rule{}, errors.New("is no rule; write *, an address, @ and a domain, or claim=value")
	}
	return rule{claim: emailClaim, value: lower(text)}, nil
}

// chosen are claims that a person can set to anything at most issuers (OpenID Connect Core section 5.7).
func chosen() []string {
	return []string{"name", "given_name", "family_name", "middle_name", "nickname", "preferred_username", "profile", "picture", "website", "upn", "nonce"}
}

// NeedsEmail says whether a rule goes by addresses.
func (a Allow) NeedsEmail() bool {
	return slices.ContainsFunc(a, func(r rule) bool { return r.claim == emailClaim })
}

// Everybody says whether all people of the issuer may come in.
func (a Allow) Everybody() bool {
	return slices.ContainsFunc(a, func(r rule) bool { return r.claim == everybody })
}

// permits takes the claims of a token that has been verified.
func (a Allow) permits(claims map[string]any) bool {
	return slices.ContainsFunc(a, func(r rule) bool {
		switch r.claim {
		case everybody:
			return true
		case emailClaim:
			return r.fitsAddress(claims)
		}
		if list, ok := claims[r.claim].([]any); ok {
			return slices.ContainsFunc(list, r.is)
		}
		return r.is(claims[r.claim])
	})
}

func (r rule) is(v any) bool {
	switch v := v.(type) {
	case string:
		return v == r.value
	case bool:
		return fmt.Sprint(v) == r.value
	}
	return false
}

func (r rule) fitsAddress(claims map[string]any) bool {
	address, _ := claims[emailClaim].(string) // anything else is no address
	local, domain, ok := splitAddress(address)
	checked := claims[emailChecked]
	if !ok || local == "" || checked != true && checked != "true" { // some issuers write it as text
		return false
	}
	return lower(address) == r.value || "@"+lower(domain) == r.value
}

// splitAddress takes plain ASCII addresses alone: quoted local parts may hold a second @, and other letters look like these.
func splitAddress(text string) (local, domain string, ok bool) {
	local, domain, ok = strings.Cut(text, "@")
	return local, domain, ok && domain != "" && printable(text) && !strings.ContainsAny(local+domain, "@* \"\\<>,;:()")
}

// lower folds ASCII letters alone: Unicode has letters that fold to them.
func lower(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}
