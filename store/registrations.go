package store

import (
	"context"

	"tarry/auth/oauth"
)

const byRegistration = `issuer = ? AND redirect_uri = ?`

func (c *conn) registrations(where string, args ...any) ([]oauth.Registration, error) {
	return collect(c, `SELECT issuer, redirect_uri, client_id, secret, token_endpoint, auth, created, expires FROM registrations WHERE `+where,
		args, func(scan func(...any) error) (r oauth.Registration, err error) {
			var created, expires int64
			err = scan(&r.Issuer, &r.RedirectURI, &r.ClientID, &r.Secret, &r.TokenEndpoint, &r.Auth, &created, &expires)
			r.Created, r.Expires = at(created), at(expires)
			return r, err
		})
}

// Registration implements [oauth.Store].
func (s *Store) Registration(ctx context.Context, issuer, redirectURI string) (oauth.Registration, error) {
	found, err := s.read(ctx).registrations(byRegistration, issuer, redirectURI)
	switch {
	case err != nil:
		return oauth.Registration{}, err
	case len(found) == 0:
		return oauth.Registration{}, oauth.ErrNotFound
	}
	return found[0], nil
}

// Register implements [oauth.Store].
func (s *Store) Register(ctx context.Context, r oauth.Registration) (out oauth.Registration, err error) {
	err = s.tx(ctx, func(c *conn) error {
		if _, err := c.exec(`INSERT INTO registrations (issuer, redirect_uri, client_id, secret, token_endpoint, auth, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (issuer, redirect_uri) DO NOTHING`, r.Issuer, r.RedirectURI, r.ClientID, r.Secret, r.TokenEndpoint, r.Auth, c.now, micros(r.Expires)); err != nil {
			return err
		}
		found, err := c.registrations(byRegistration, r.Issuer, r.RedirectURI)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errAgain // another was first, and was dropped just now
		}
		out = found[0]
		return nil
	})
	return out, err
}

// Unregister implements [oauth.Store].
func (s *Store) Unregister(ctx context.Context, issuer, redirectURI, clientID string) error {
	_, err := s.read(ctx).exec(`DELETE FROM registrations WHERE issuer = ? AND redirect_uri = ? AND client_id = ?`, issuer, redirectURI, clientID)
	return err
}

// Flows implements [oauth.Store].
func (s *Store) Flows(ctx context.Context, requestID string, limit int) ([]oauth.Flow, error) {
	return s.read(ctx).flows(`request = ? ORDER BY created DESC LIMIT ?`, requestID, limit)
}
