package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tarry/session"
	"tarry/wire"
)

// reconcileEvery is how often runs are compared with Temporal, and staleAfter how long one must have been silent: a run
// that was terminated or timed out there can no longer say so itself.
const (
	reconcileEvery = time.Minute
	staleAfter     = 2 * time.Minute
	reconcileBatch = 100
)

func (s *Server) reconcile(ctx context.Context) error {
	rows, err := s.Parts.Store.Unsettled(ctx, time.Now().Add(-staleAfter), reconcileBatch)
	if err != nil {
		return fmt.Errorf("list runs: %w", err)
	}
	var errs []error
	for _, row := range rows {
		running, err := s.Engine.Running(ctx, row.WorkflowID)
		switch {
		case err != nil:
			return errors.Join(append(errs, fmt.Errorf("describe run: %w", err))...)
		case running:
			errs = append(errs, s.Parts.Store.Touch(ctx, row))
		default:
			s.Log.WarnContext(ctx, "run is gone", "workflow_id", row.WorkflowID)
			errs = append(errs, s.settle(ctx, row))
		}
	}
	return errors.Join(errs...)
}

// settle closes what a run that is gone left open.
func (s *Server) settle(ctx context.Context, row session.Session) error {
	if row.Invocation == "" {
		return nil
	}
	if err := s.Parts.Store.Abandon(ctx, row, wire.EndFailed); err != nil {
		return fmt.Errorf("settle run: %w", err)
	}
	return nil
}
