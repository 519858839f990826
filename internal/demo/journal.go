package demo

import (
	"maps"
	"net/url"
	"slices"
	"time"
)

// Secrets lists what must not turn up where no secret may be: everything that the provider issued, and every state and
// verifier that it was shown.
type Secrets struct {
	Codes, AccessTokens, RefreshTokens, ClientSecrets []string
	// IDTokens and Assertions are signed and so have no mark in them.
	IDTokens, Assertions []string
	DeviceCodes          []string
	// States and Verifiers are the client's own; they carry no mark.
	States, Verifiers []string
}

// All is every secret in one list, without empty ones.
func (s Secrets) All() []string {
	all := slices.Concat(s.Codes, s.AccessTokens, s.RefreshTokens, s.ClientSecrets, s.IDTokens, s.Assertions, s.DeviceCodes, s.States, s.Verifiers)
	return slices.DeleteFunc(all, func(v string) bool { return v == "" })
}

func (s Secrets) clone() Secrets {
	return Secrets{
		Codes: slices.Clone(s.Codes), AccessTokens: slices.Clone(s.AccessTokens),
		RefreshTokens: slices.Clone(s.RefreshTokens), ClientSecrets: slices.Clone(s.ClientSecrets),
		DeviceCodes: slices.Clone(s.DeviceCodes), IDTokens: slices.Clone(s.IDTokens), Assertions: slices.Clone(s.Assertions),
		States: slices.Clone(s.States), Verifiers: slices.Clone(s.Verifiers),
	}
}

// Counts is how often each endpoint was asked, refusals included.
type Counts struct {
	Authorize, Registrations, Revocations int
	// Logins are accepted passwords; Approvals and Denials are decisions on the consent page.
	Logins, Approvals, Denials int
	// Logouts are browsers that were sent to sign out.
	Logouts int
	// Token counts token requests by grant_type, TokenOK those that were answered with a token.
	Token, TokenOK map[string]int
}

// Request is one request to an endpoint of the provider; pages, style and metadata have only method, path and status.
type Request struct {
	Time         time.Time
	Method, Path string
	// Params are query and form of /authorize, /token and /revoke, secrets included.
	Params url.Values
	Status int
	// Error is the OAuth error code of the answer, also of an authorization response.
	Error string
}

// journal is guarded by the provider's mutex.
type journal struct {
	secrets  Secrets
	counts   Counts
	requests []Request
}

func newJournal() journal {
	return journal{counts: Counts{Token: map[string]int{}, TokenOK: map[string]int{}}}
}

func appendNew(list []string, v string) []string {
	if v == "" || slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

// Secrets returns all secrets so far.
func (p *Provider) Secrets() Secrets {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal.secrets.clone()
}

// Counts returns the counters.
func (p *Provider) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.journal.counts
	c.Token, c.TokenOK = maps.Clone(c.Token), maps.Clone(c.TokenOK)
	return c
}

// Requests returns the request log in the order of the answers. It may hold secrets.
func (p *Provider) Requests() []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.journal.requests)
}
