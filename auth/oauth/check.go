package oauth

import (
	"context"

	"tarry/agent"
	"tarry/auth"
)

// Asked says who is asked in the login that a state belongs to, and by which request; [ErrUnknownState] when there is none.
func (s *Service) Asked(ctx context.Context, state string) (owner agent.Owner, request string, err error) {
	f, err := s.flowOf(ctx, Callback{State: state})
	return f.Owner, f.Request, err
}

// Check proves state, browser and user as [Service.Complete] does, and does nothing else: a mismatch is recorded, as there.
func (s *Service) Check(ctx context.Context, access auth.Access, cb Callback) error {
	f, err := s.flowOf(ctx, cb)
	if err != nil {
		return err
	}
	reason, err := s.prove(f, access, cb)
	if err != nil {
		s.refuse(ctx, f, reason, cb.Code)
	}
	return err
}
