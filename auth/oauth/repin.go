package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tarry/auth"
	"tarry/auth/discovery"
)

// lookTimeout bounds the second discovery: a person waits for it.
const lookTimeout = 3 * time.Second

// lookAgain asks the server once more who gives its credential, days after it was asked first. The person must not log in
// at a provider that the server has left, and must not be sent to one that the page did not show: [ErrMoved] then. Whoever
// cannot be asked leaves things as they were.
func (s *Service) lookAgain(ctx context.Context, r auth.Request) error {
	n := r.Need
	if !n.Movable || strings.ContainsAny(n.Metadata, "\"\\") {
		return nil
	}
	found, err := s.named(ctx, n)
	if err != nil {
		s.cfg.Log.WarnContext(ctx, "provider not looked up again; the login goes to the one that was found when it was asked for",
			"request_id", r.ID, "provider", discovery.Host(n.Provider.Issuer), "err", err)
		return nil
	}
	if found.Provider.Issuer == n.Provider.Issuer {
		return nil
	}
	to := n
	to.Provider, to.Slot.Issuer = found.Provider, found.Provider.Issuer
	if to.Client, to.Slot.Client, err = s.ownClient(found.Provider); err != nil {
		return err
	}
	moved, err := s.cfg.Store.Repin(ctx, n.Slot, to)
	switch {
	case errors.Is(err, ErrConflict): // somebody else was faster, or is at it
		return ErrMoved
	case err != nil:
		return fmt.Errorf("repin requests: %w", err)
	}
	s.cfg.Log.InfoContext(ctx, "the server names another provider; the login is asked for there", "request_id", r.ID, "requests", moved,
		"from", discovery.Host(n.Provider.Issuer), "to", discovery.Host(to.Provider.Issuer))
	s.cfg.Wake()
	return ErrMoved
}

// named finds the provider that the server names: the pinned one if it is still among them, else the one that a new
// request would go to.
func (s *Service) named(ctx context.Context, n auth.Need) (discovery.Found, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	var challenge []string
	if n.Metadata != "" {
		challenge = []string{`Bearer resource_metadata="` + n.Metadata + `"`}
	}
	rules := discovery.Rules{
		Issuer:           n.Provider.Issuer,
		AllowMissingPKCE: slices.Contains(n.Relaxed, relaxedPKCE), Legacy: slices.Contains(n.Relaxed, relaxedLegacy),
	}
	found, err := s.cfg.Discover.Server(ctx, n.Server, challenge, rules)
	if errors.Is(err, auth.ErrMisconfigured) {
		rules.Issuer = ""
		found, err = s.cfg.Discover.Server(ctx, n.Server, challenge, rules)
	}
	if err != nil {
		return found, fmt.Errorf("discover %s: %w", discovery.Host(n.Server), err)
	}
	if found.Resource != strings.TrimPrefix(n.Slot.Resource, boundTo) {
		return found, misconfigured("%s calls itself by another resource than before", discovery.Host(n.Server))
	}
	return found, nil
}
