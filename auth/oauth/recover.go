package oauth

import (
	"context"
	"errors"
	"fmt"

	"tarry/agent"
	"tarry/auth"
)

const recoverBatch = 50

// Recover finishes logins whose process died between the callback and the token: one retry each, with the code that was
// written ahead; then the request waits for another login. Call it at start and from time to time. It returns how many
// it took over; several processes may call it at once.
func (s *Service) Recover(ctx context.Context) (int, error) {
	if err := s.dropParked(ctx); err != nil {
		return 0, err
	}
	flows, err := s.cfg.Store.Interrupted(ctx, recoverBatch)
	if err != nil {
		return 0, fmt.Errorf("list interrupted logins: %w", err)
	}
	done := 0
	var failed []error
	for _, f := range flows {
		if ctx.Err() != nil {
			break
		}
		taken, err := s.recover(ctx, f)
		if err != nil {
			failed = append(failed, err)
		}
		if taken {
			done++
		}
	}
	return done, errors.Join(failed...)
}

func (s *Service) recover(ctx context.Context, f Flow) (taken bool, err error) {
	// The browser was proven before the code was written ahead.
	access := func(o agent.Owner) bool { return o == f.Owner }
	ctx = auth.WithActor(ctx, f.Actor)
	if f.Resumed {
		_, err := s.reopen(ctx, access, f, "interrupted twice", ErrSpentFlow)
		if errors.Is(err, ErrSpentFlow) {
			err = nil
		}
		return true, err
	}
	f, err = s.cfg.Store.Resume(ctx, f.StateHash, s.lease())
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("resume login: %w", err)
	}
	a, err := s.openAnswer(f)
	if err != nil {
		if _, reopenErr := s.reopen(ctx, access, f, "unreadable", err); reopenErr != nil {
			return true, reopenErr
		}
		return true, nil
	}
	out, err := s.finish(ctx, access, f, a)
	// What finish says about the login has been logged and stored; only a request that is left hanging is a failure.
	if err != nil && (out.Request.ID == "" || out.Outcome == auth.StatusExchanging) {
		return true, err
	}
	return true, nil
}
