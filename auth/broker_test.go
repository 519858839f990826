package auth_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
)

// oneToken is a broker with one answer, which notes what it was asked.
type oneToken struct {
	err        error
	wants      []auth.Want
	challenges []auth.Challenge
}

func (b *oneToken) Token(_ context.Context, want auth.Want) (auth.AccessToken, error) {
	b.wants = append(b.wants, want)
	return auth.AccessToken{Access: auth.NewSecret(canary), Version: 3}, b.err
}

func (b *oneToken) Challenged(_ context.Context, want auth.Want, c auth.Challenge) error {
	b.wants, b.challenges = append(b.wants, want), append(b.challenges, c)
	return b.err
}

func ExampleToken() {
	// Tarry makes this context; the tool declares the credential under the key "calendar".
	ctx := auth.WithBroker(context.Background(), &oneToken{}, "list_events", []agent.Auth{{Key: "calendar"}})

	token, err := auth.Token(ctx, "calendar")
	if err != nil {
		return // as it is: the run waits for the login and calls the tool again
	}
	fmt.Println(token.Access, token.Version)
	// Output: [secret] 3
}

func TestToolGetsWhatItDeclared(t *testing.T) {
	t.Parallel()
	b := &oneToken{}
	declared := agent.Auth{Key: "calendar", Resource: "https://calendar.example"}
	ctx := auth.WithBroker(t.Context(), b, "tool", []agent.Auth{{Key: "other"}, declared})
	token, err := auth.Token(ctx, "calendar")
	require.NoError(t, err)
	require.Equal(t, canary, token.Access.Reveal())
	require.NoError(t, auth.Refused(ctx, "calendar", token))
	want := auth.Want{Auth: declared, Tool: "tool"}
	require.Equal(t, []auth.Want{want, want}, b.wants)
	require.Equal(t, []auth.Challenge{{Status: 401, Used: 3}}, b.challenges)

	for name, ctx := range map[string]context.Context{"not declared": ctx, "no tool call": t.Context()} {
		_, err = auth.Token(ctx, "mail")
		require.ErrorIs(t, err, auth.ErrNotDeclared, name)
		require.ErrorIs(t, auth.Refused(ctx, "mail", token), auth.ErrNotDeclared, name)
	}
}

func TestRequiredErrorComesThrough(t *testing.T) {
	t.Parallel()
	ctx := auth.WithBroker(t.Context(), &oneToken{err: &auth.RequiredError{}}, "tool", []agent.Auth{{Key: "k"}})
	_, err := auth.Token(ctx, "k")
	for _, err := range []error{err, auth.Refused(ctx, "k", auth.AccessToken{})} {
		var r *auth.RequiredError
		require.ErrorAs(t, err, &r)
	}
}
