package tarrytest

import (
	"context"
	"fmt"
	"sync"

	"tarry/activities"
	"tarry/auth"
	"tarry/session"
	"tarry/wire"
)

type panicError struct{ value any }

func (e panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// questions opens requests in the store, where their events are, and decides by the test's credentials how they end.
type questions struct {
	activities.Requests
	credentials *Credentials

	mu    sync.Mutex
	asked []auth.Request
}

// Ask implements [activities.Requests].
func (q *questions) Ask(ctx context.Context, a session.Append, r auth.Request, event func(auth.Request) (session.NewEvent, error)) (auth.Asked, error) {
	if _, ok := q.credentials.token(r.Need.Key, r.Need.Refused); ok {
		return auth.Asked{Granted: true}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, old := range q.asked {
		if old.Need.Key == r.Need.Key && (old.Status == auth.StatusDenied || old.Status == auth.StatusExpired) {
			return auth.Asked{Request: old, Denied: true}, nil
		}
	}
	out, err := q.Requests.Ask(ctx, a, r, event)
	if err != nil {
		return out, fmt.Errorf("ask: %w", err)
	}
	for _, old := range q.asked {
		if old.ID == out.Request.ID {
			return out, nil
		}
	}
	q.asked = append(q.asked, out.Request)
	return out, nil
}

// CloseRequest implements [activities.Requests].
func (q *questions) CloseRequest(_ context.Context, _ session.Session, id string) (auth.Status, error) {
	q.settle(id, auth.StatusExpired)
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.asked {
		if r.ID == id {
			return r.Status, nil
		}
	}
	return "", session.ErrNotFound
}

// settle ends a request that is open; an ended one stays as it is.
func (q *questions) settle(id string, status auth.Status) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.asked {
		if q.asked[i].ID == id && q.asked[i].Status.Open() {
			q.asked[i].Status = status
		}
	}
}

func (q *questions) pending() (out []auth.Request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.asked {
		if r.Status.Open() {
			out = append(out, r)
		}
	}
	return out
}

// pauses holds the run where it says that nothing but waits is left. As an activity runs then, the test environment's
// clock stands still until the test has decided.
type pauses struct {
	session.Log
	paused, resume chan struct{}
}

// SetStatus implements [session.Log].
func (p *pauses) SetStatus(ctx context.Context, row session.Session, run, status string) error {
	if err := p.Log.SetStatus(ctx, row, run, status); err != nil {
		return fmt.Errorf("set status: %w", err)
	}
	if status != string(wire.StateWaitingCredential) {
		return nil
	}
	p.paused <- struct{}{}
	<-p.resume
	return nil
}
