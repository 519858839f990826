package signin

import (
	"context"
	"errors"
	"fmt"

	"tarry/agent"
	"tarry/auth"
)

// ErrForbidden is in every error of [Principal.Owner]; answer 403. An id that cannot be one has [agent.ErrInvalidOwner]
// in it as well.
var ErrForbidden = errors.New("not allowed for this caller")

// Principal is an authenticated caller. The zero value may act for nobody.
type Principal struct {
	// Name is shown to people.
	Name string
	// Subject is stable and unique among all principals: for people who sign in, a digest of issuer and subject.
	Subject string
	// User is the principal's own user id, which [Me] stands for; empty for a service, which has users but is none.
	User string
	// Mode is how the principal signed in.
	Mode string
	// Service is set for an application that acts for its own users, and for their browsers.
	Service string
	// ReturnURL is where the browser of a service's user goes after the provider. Set for [ModeGuest] alone.
	ReturnURL string

	may auth.Access
}

// NewPrincipal makes a principal that may act for the owners that may allows. Sign-in modes call it, and tests.
func NewPrincipal(name, subject string, may auth.Access) Principal {
	return Principal{Name: name, Subject: subject, may: may}
}

// Owner returns the owner that a request names, if the principal may act for it. The user [Me] is the principal's own.
func (p Principal) Owner(app, user string) (agent.Owner, error) {
	if user == Me {
		if user = p.User; user == "" {
			return agent.Owner{}, ErrForbidden
		}
	}
	owner := agent.Owner{App: app, User: user}
	if err := owner.Validate(); err != nil {
		return agent.Owner{}, fmt.Errorf("%w: %w", ErrForbidden, err)
	}
	if p.may == nil || !p.may(owner) {
		return agent.Owner{}, ErrForbidden
	}
	return owner, nil
}

// Access is [Principal.Owner] as a predicate, for rows that are found by an id that a person was handed.
func (p Principal) Access() auth.Access {
	return func(owner agent.Owner) bool {
		_, err := p.Owner(owner.App, owner.User)
		return err == nil
	}
}

type principalKey struct{}

// NewContext returns ctx with p in it. What is changed under it is p's act.
func NewContext(ctx context.Context, p Principal) context.Context {
	return context.WithValue(auth.WithActor(ctx, p.Subject), principalKey{}, p)
}

// FromContext returns the caller; outside of a sign-in mode the zero value, which may act for nobody.
func FromContext(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal) // absent is the zero value
	return p
}
