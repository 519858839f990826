package outbox

import (
	"context"
	"errors"
	"time"
)

// ErrGone says that the receiver does not exist any more, or never did: final.
var ErrGone = errors.New("outbox: receiver is gone")

// Message is a signal on its way to a workflow.
type Message struct {
	ID         string
	WorkflowID string
	Signal     string
	Payload    []byte // JSON
	// Subject is the request or inbox row that it announces.
	Subject string
	// Sent counts deliveries, Failed the failed tries since the last one.
	Sent   int
	Failed int
}

// Store keeps messages. Safe for concurrent use by several processes.
type Store interface {
	// Due claims up to limit messages that are to be delivered now: nobody else gets them for the given time.
	Due(ctx context.Context, limit int, claim time.Duration) ([]Message, error)
	// Sent records a delivery; the message comes up again after next, unless the run acts on it before.
	Sent(ctx context.Context, id string, next time.Duration) error
	// Failed records a failed try.
	Failed(ctx context.Context, id string, next time.Duration) error
	// Gone ends a message whose receiver is gone.
	Gone(ctx context.Context, id string) error
}

// Deliver delivers one message. It returns an error that wraps [ErrGone] when no retry can help.
type Deliver func(ctx context.Context, m Message) error
