package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/agent"
)

// AccessToken is a live access token, or what a person typed in its place.
type AccessToken struct {
	// Access is the token, API key or password.
	Access Secret
	// Username is whose password it is; zero where it is none.
	Username Secret
	// IDToken is the verified ID token of an openIdConnect credential, for tools that want to know whose it is; the zero value
	// when there is none or it has ended. Where the definition says use_id_token, Access is the same token.
	IDToken Secret
	// Version grows with every login and refresh of the slot.
	Version int64
	Scopes  []string
	// Expires is zero when the provider did not say.
	Expires time.Time
}

// Errors of a [Broker].
var (
	// ErrNoToken: there is no credential, and only the server can say which one it wants. Call it without.
	ErrNoToken = errors.New("auth: no token")
	// ErrUnavailable: the credential could not be had for a passing reason; try again.
	ErrUnavailable = errors.New("auth: provider unavailable")
	// ErrMisconfigured: no login would help; the message names what an operator must change.
	ErrMisconfigured = errors.New("auth: misconfigured")
	// ErrNotDeclared: a Go tool asked for a key that it does not declare.
	ErrNotDeclared = errors.New("auth: credential is not declared")
)

// Broker gives tools of one owner their tokens. It is made for one attempt of one activity; safe for concurrent use.
type Broker interface {
	// Token returns a token for want, refreshed when it is due. No usable credential: a [*RequiredError], or [ErrNoToken]
	// when nothing is known about the server yet.
	Token(ctx context.Context, want Want) (AccessToken, error)
	// Challenged is told of a refusal. nil means that a fresh token is there and one retry makes sense; a
	// [*RequiredError] that a person must log in; anything else that no login would help.
	Challenged(ctx context.Context, want Want, c Challenge) error
}

type brokerKey struct{}

type toolAuth struct {
	broker   Broker
	declared []agent.Auth
	tool     string
}

// WithBroker puts a broker and the credentials that tool declares into ctx, for [Token].
func WithBroker(ctx context.Context, b Broker, tool string, declared []agent.Auth) context.Context {
	return context.WithValue(ctx, brokerKey{}, toolAuth{broker: b, declared: declared, tool: tool})
}

// Token returns the access token for the credential that the running Go tool declares under key; for one that a person types
// in, the API key, the bearer token, or the password with its user name. When a person must
// log in first it returns a [*RequiredError]; the tool returns that error as it is, the run waits, and the tool is called
// again with the same call id. The tool sends the token to the resource it declared and nowhere else.
func Token(ctx context.Context, key string) (AccessToken, error) {
	t, a, err := declared(ctx, key)
	if err != nil {
		return AccessToken{}, err
	}
	token, err := t.broker.Token(ctx, Want{Auth: a, Tool: t.tool})
	if err != nil {
		return AccessToken{}, fmt.Errorf("token %s: %w", key, err)
	}
	return token, nil
}

// Refused tells the broker that the resource did not take the token of key (HTTP 401). nil means that a fresh one is
// there; else the tool returns the error.
func Refused(ctx context.Context, key string, t AccessToken) error {
	c, a, err := declared(ctx, key)
	if err != nil {
		return err
	}
	if err := c.broker.Challenged(ctx, Want{Auth: a, Tool: c.tool}, Challenge{Status: http.StatusUnauthorized, Used: t.Version}); err != nil {
		return fmt.Errorf("token %s: %w", key, err)
	}
	return nil
}
