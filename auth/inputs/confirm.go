package inputs

import (
	"context"
	"fmt"

	"tarry/auth"
)

// SealConfirmation returns what a person is asked to approve in a form that the row of r may hold.
func (s *Service) SealConfirmation(r auth.Request, c auth.Confirmation) ([]byte, error) {
	return s.seal(r, columnInput, c)
}

// Confirmation opens what r asks to be approved.
func (s *Service) Confirmation(r auth.Request) (c auth.Confirmation, err error) {
	if r.Need.Type != auth.TypeConfirmation {
		return c, ErrNotConfirmation
	}
	return c, s.open(r, columnInput, r.Need.Input, &c)
}

// Consent opens what was approved, and what the person said besides.
func (s *Service) Consent(r auth.Request) (c auth.Confirmation, said auth.Consent, err error) {
	if r.Status != auth.StatusGranted {
		return c, said, ErrClosed
	}
	if c, err = s.Confirmation(r); err != nil {
		return c, said, err
	}
	return c, said, s.open(r, columnAnswer, r.Need.Answer, &said)
}

// Confirm ends a request with a person's approval or rejection. Only the first answer counts; whatever comes after it is
// [ErrClosed] and changes nothing. Errors besides: what the store says about requests that access does not allow,
// [ErrNotConfirmation].
func (s *Service) Confirm(ctx context.Context, access auth.Access, id string, confirmed bool, said auth.Consent) (auth.Request, error) {
	r, err := s.Store.Request(ctx, id, access)
	if err != nil {
		return r, fmt.Errorf("confirm: %w", err)
	}
	if r.Need.Type != auth.TypeConfirmation {
		return r, ErrNotConfirmation
	}
	status := auth.StatusDenied
	if confirmed {
		status = auth.StatusGranted
	}
	return s.end(ctx, access, r, said, status)
}
