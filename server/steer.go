package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"tarry/agent"
	"tarry/engine"
	"tarry/outbox"
	"tarry/session"
	"tarry/wire"
)

// deliver hands one message of the outbox to its run. A message of the inbox starts the run if there is none.
func (s *Server) deliver(ctx context.Context, m outbox.Message) error {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var err error
	switch m.Signal {
	case wire.SignalMessage:
		err = s.announce(ctx, m)
	case wire.SignalResolved:
		var payload wire.Resolved
		if err := json.Unmarshal(m.Payload, &payload); err != nil {
			return fmt.Errorf("%w: payload: %w", outbox.ErrGone, err)
		}
		err = s.Engine.Signal(ctx, m.WorkflowID, m.Signal, payload)
	default:
		return fmt.Errorf("%w: unknown signal %q", outbox.ErrGone, m.Signal)
	}
	if errors.Is(err, engine.ErrGone) || errors.Is(err, session.ErrNotFound) {
		return fmt.Errorf("%w: %w", outbox.ErrGone, err)
	}
	if err != nil {
		return fmt.Errorf("deliver %s: %w", m.Signal, err)
	}
	return nil
}

func (s *Server) announce(ctx context.Context, m outbox.Message) error {
	row, err := s.Parts.Store.ByWorkflow(ctx, m.WorkflowID)
	if err != nil {
		return fmt.Errorf("find session: %w", err)
	}
	if row.Closed {
		return session.ErrNotFound
	}
	if err := s.settlePrevious(ctx, row); err != nil {
		return err
	}
	def, err := s.Parts.Store.Definition(ctx, row.Definition)
	if err != nil {
		return fmt.Errorf("find definition: %w", err)
	}
	return s.Engine.Message(ctx, m.WorkflowID, m.Subject, row.Definition, def.Plan(), wire.Mode(row.Mode)) //nolint:wrapcheck // says what it did
}

// settlePrevious closes what a run that was terminated left open, before the message starts another: the new run would
// find calls without a response.
func (s *Server) settlePrevious(ctx context.Context, row session.Session) error {
	if row.Invocation == "" {
		return nil
	}
	previous, err := s.Parts.Store.Invocation(ctx, row.Owner, row.Invocation)
	if err != nil || !previous.Ended.IsZero() {
		return err //nolint:wrapcheck // says what it did
	}
	running, err := s.Engine.Running(ctx, row.WorkflowID)
	if err != nil || running {
		return err //nolint:wrapcheck // says what it did
	}
	return s.settle(ctx, row)
}

// steering is what the API handlers need of the engine.
type steering struct{ s *Server }

// Definition implements adk.Starter.
func (t steering) Definition(ctx context.Context, app string) (string, error) {
	def, err := t.s.Parts.Store.App(ctx, app)
	if err != nil {
		return "", fmt.Errorf("find app: %w", err)
	}
	hash, err := def.Hash()
	if err != nil {
		return "", fmt.Errorf("definition: %w", err)
	}
	return hash, nil
}

// WorkflowID implements adk.Starter.
func (t steering) WorkflowID(owner agent.Owner, id string) string {
	return t.s.Engine.WorkflowID(owner, id)
}

// Cancel implements adk.Canceller. A run that is gone is reconciled, so that its session does not show as running.
func (t steering) Cancel(ctx context.Context, row session.Session, invocation string) error {
	err := t.s.Engine.Cancel(ctx, row.WorkflowID, invocation)
	if errors.Is(err, engine.ErrGone) {
		return t.s.settle(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	return nil
}

// CancelCall implements runs.Canceller.
func (t steering) CancelCall(ctx context.Context, row session.Session, call string) error {
	err := t.s.Engine.CancelCall(ctx, row.WorkflowID, call)
	if errors.Is(err, engine.ErrGone) {
		return t.s.settle(ctx, row)
	}
	if err != nil {
		return fmt.Errorf("cancel call: %w", err)
	}
	return nil
}

// History implements runs.Histories.
func (t steering) History(ctx context.Context, workflowID, runID string) ([]byte, error) {
	body, err := t.s.Engine.History(ctx, workflowID, runID)
	if errors.Is(err, engine.ErrGone) {
		return nil, session.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return body, nil
}
