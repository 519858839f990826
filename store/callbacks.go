package store

import (
	"context"

	"tarry/auth"
	"tarry/auth/oauth"
)

// Callback implements [oauth.Store].
func (s *Store) Callback(ctx context.Context, digest string) (issuer string, err error) {
	err = s.read(ctx).get(`SELECT issuer FROM callbacks WHERE digest = ?`, []any{digest}, []any{&issuer})
	if missing(err) {
		return "", oauth.ErrNotFound
	}
	return issuer, err
}

// Callbacks implements [oauth.Store].
func (s *Store) Callbacks(ctx context.Context, limit int) ([]string, error) {
	return collect(s.read(ctx), `SELECT digest FROM callbacks WHERE document = 1 ORDER BY used DESC, digest LIMIT ?`, []any{limit},
		func(scan func(...any) error) (digest string, err error) {
			err = scan(&digest)
			return digest, err
		})
}

// useCallback notes that a login needs the callback path of its provider: the path is known from then on, and listed in
// the metadata document where that is the client.
func (c *conn) useCallback(n auth.Need) error {
	if !n.Login() || n.Typed != nil {
		return nil // nobody is sent away, so nobody comes back
	}
	document := 0
	if n.Slot.Client == auth.ClientMetadata {
		document = 1
	}
	_, err := c.exec(`INSERT INTO callbacks (digest, issuer, used, document) VALUES (?, ?, ?, ?)
		ON CONFLICT (digest) DO UPDATE SET used = excluded.used, document = CASE WHEN callbacks.document = 1 THEN 1 ELSE excluded.document END`,
		oauth.CallbackDigest(oauth.CallbackIssuer(n.Provider)), n.Provider.Issuer, c.now, document)
	return err
}
