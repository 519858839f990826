package tarrytest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tarry/activities"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/session"
)

// logins asks for logins where the test's credentials have none. Whether there is one, they decide alone: the store keeps
// requests, and of grants only that there was one.
type logins struct {
	activities.Requests
	credentials *Credentials
}

// Ask implements [activities.Requests].
func (l logins) Ask(ctx context.Context, a session.Append, r auth.Request, event func(auth.Request) (session.NewEvent, error)) (auth.Asked, error) {
	if r.Need.Login() {
		if _, ok := l.credentials.token(r.Need.Key, r.Need.Refused); ok {
			return auth.Asked{Granted: true}, nil
		}
	}
	out, err := l.Requests.Ask(ctx, a, r, event)
	if err != nil {
		return out, fmt.Errorf("ask: %w", err)
	}
	return out, nil
}

// Grant gives the login that the run waits for under key, and lets it go on. Fails the test if the run waits for none.
func (r *Run) Grant(key, token string) {
	r.t.Helper()
	asked := r.logins(key)
	var scopes []string
	for _, q := range asked {
		scopes = auth.Union(scopes, q.Need.Scopes)
	}
	r.credentials.Grant(key, token, scopes...)
	over := r.now().Add(-time.Second) // a grant that nobody counts on
	r.login(asked, func(ctx context.Context, flow oauth.Flow) error {
		_, err := r.store.Commit(ctx, flow.StateHash, oauth.Grant{Access: []byte{}, Provider: flow.Provider, Client: flow.Client, Scopes: scopes, Expires: over})
		return err //nolint:wrapcheck // the caller does
	})
	r.goOn()
}

// Deny refuses the login that the run waits for under key, and lets it go on. Fails the test if the run waits for none.
func (r *Run) Deny(key string) {
	r.t.Helper()
	r.login(r.logins(key), func(ctx context.Context, flow oauth.Flow) error {
		return r.store.Deny(ctx, flow.StateHash, "access_denied")
	})
	r.goOn()
}

// logins are the open ones of a key.
func (r *Run) logins(key string) (out []auth.Request) {
	r.t.Helper()
	r.mustWait("login " + key)
	for _, q := range r.open() {
		if q.Need.Login() && q.Need.Key == key {
			out = append(out, q)
		}
	}
	if len(out) == 0 {
		r.t.Fatalf("tarrytest: the run does not wait for the login %q; it waits for: %v", key, r.Waiting())
	}
	return out
}

// login takes a person through the login of each request, which one for another may have ended.
func (r *Run) login(asked []auth.Request, end func(context.Context, oauth.Flow) error) {
	r.t.Helper()
	ctx := context.Background()
	for _, q := range asked {
		flow := oauth.Flow{
			StateHash: q.ID, Request: q.ID, Owner: q.Owner, Provider: q.Need.Provider, Client: q.Need.Client, Scopes: q.Need.Scopes,
			Shown: q.ID, Expires: r.now().Add(time.Hour),
		}
		err := r.store.BeginFlow(ctx, flow, 1)
		if errors.Is(err, oauth.ErrConflict) {
			continue
		}
		if err == nil {
			err = end(ctx, flow)
		}
		if err != nil {
			r.t.Fatalf("tarrytest: login %s: %v", q.Need.Key, err)
		}
	}
}
