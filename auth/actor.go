package auth

import "context"

type actorKey struct{}

// WithActor returns ctx of what a person does, or a service on somebody's behalf: subject is the one of the caller who was
// authenticated, never anything that a body or path says. The store writes it into its audit rows.
func WithActor(ctx context.Context, subject string) context.Context {
	return context.WithValue(ctx, actorKey{}, subject)
}

// Actor is the subject of [WithActor]; empty for what runs, deadlines and sweepers do.
func Actor(ctx context.Context) string {
	subject, _ := ctx.Value(actorKey{}).(string) // absent is empty
	return subject
}
