package session

import (
	"context"
	"encoding/json"
)

// Partial is a piece of an answer that a model is still giving, for those who read along. It is no part of what was said:
// the event that it belongs to holds the whole answer, and with that the piece is gone.
type Partial struct {
	// Seq grows with each piece of a session.
	Seq int64
	// Of is the id of the event that will hold the whole answer.
	Of         string
	Invocation string
	// Body is an [Event] with Partial set and an id of its own.
	Body json.RawMessage
}

// Partials keeps pieces for a short while. Every method is atomic and safe for concurrent use by several processes.
type Partials interface {
	// AddPartial stores a piece of the event of, with the time of the store where e has none. Nothing happens once that event is
	// stored.
	AddPartial(ctx context.Context, s Session, of string, e Event) error
	// Partials lists the session's pieces with Seq > after, oldest first.
	Partials(ctx context.Context, s Session, after int64) ([]Partial, error)
}
