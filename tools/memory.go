package tools

import (
	"context"
	"time"
)

// Memory is what somebody said in an earlier session of the same user and app.
type Memory struct {
	// Author is "user" or an agent's name.
	Author string
	Time   time.Time
	Text   string
}

// Memories is what is remembered of a user, for the call of a tool or a callback.
type Memories interface {
	// Search finds the memories that share most words with query, at most ten.
	Search(ctx context.Context, query string) ([]Memory, error)
	// Add remembers what was said in the session so far, in place of what was added of it before.
	Add(ctx context.Context) error
}

type memoriesKey struct{}

// WithMemories puts m into ctx, for [SearchMemory] and [AddSessionToMemory].
func WithMemories(ctx context.Context, m Memories) context.Context {
	return context.WithValue(ctx, memoriesKey{}, m)
}

// SearchMemory finds what was said in sessions that were added to the user's memory. ctx is the one that the tool or the callback
// got.
func SearchMemory(ctx context.Context, query string) ([]Memory, error) {
	m, ok := ctx.Value(memoriesKey{}).(Memories)
	if !ok {
		return nil, errNoCall
	}
	return m.Search(ctx, query) //nolint:wrapcheck // as it is
}

// AddSessionToMemory adds what was said in the session so far to the user's memory, as a client does by PATCH. An after_agent
// callback is a good place. To add it again replaces what was added before.
func AddSessionToMemory(ctx context.Context) error {
	m, ok := ctx.Value(memoriesKey{}).(Memories)
	if !ok {
		return errNoCall
	}
	return m.Add(ctx) //nolint:wrapcheck // as it is
}
