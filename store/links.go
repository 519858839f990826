package store

import (
	"context"
	"slices"

	"tarry/auth"
	"tarry/auth/oauth"
)

// lead gives a request that is about to be opened its link: that of the oldest open request whose login would answer it,
// or one of its own. In the latter case it asks also for what others wait for, within its definition's limit, so that one
// login answers them all. The slot is locked.
func (c *conn) lead(r *auth.Request) error {
	r.Leader = r.ID
	others, err := c.requests(`slot = ? AND `+isOpen+` ORDER BY seq`, r.Need.Slot.ID())
	if err != nil {
		return err
	}
	others = slices.DeleteFunc(others, func(o auth.Request) bool { return !o.Need.SameLogin(r.Need) })
	for _, o := range others {
		if auth.Covers(o.Need.Scopes, r.Need.Scopes) {
			r.Leader, r.Correlator = o.Leader, o.Correlator
			return nil
		}
	}
	wide := r.Need.Scopes
	for _, o := range others {
		if len(r.Need.Limit) == 0 || auth.Covers(r.Need.Limit, o.Need.Scopes) {
			wide = auth.Union(wide, o.Need.Scopes)
		}
	}
	if len(wide) > len(r.Need.Scopes) {
		r.Need.Wanted, r.Need.Scopes = slices.Clone(r.Need.Scopes), wide
		if r.Need.Wanted == nil {
			r.Need.Wanted = []string{}
		}
	}
	return nil
}

// Behind implements [oauth.Store].
func (s *Store) Behind(ctx context.Context, id string, access auth.Access) ([]auth.Request, error) {
	r, err := s.Request(ctx, id, access)
	if err != nil {
		return nil, err
	}
	open, err := s.read(ctx).behind(r)
	if err != nil {
		return nil, err
	}
	if len(open) == 0 {
		return []auth.Request{r}, nil
	}
	return open, nil
}

// behind lists the open requests that share the link of r, oldest first.
func (c *conn) behind(r auth.Request) ([]auth.Request, error) {
	open, err := c.requests(`link = ? AND app = ? AND usr = ? AND `+isOpen+` ORDER BY seq`, r.Leader, r.Owner.App, r.Owner.User)
	if err != nil || len(open) == 0 {
		return nil, err
	}
	return slices.DeleteFunc(open, func(o auth.Request) bool { return o.Need.Slot != open[0].Need.Slot }), nil
}

// inherit gives the flows of a request that nobody waits for any more to the next one behind its link: whoever is at the
// provider at this moment, or is about to come back, logs in for the others. The slot is locked.
func (c *conn) inherit(r auth.Request) error {
	open, err := c.behind(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(o auth.Request) bool {
		return o.ID != r.ID && o.Status == auth.StatusPending && o.Need.Slot == r.Need.Slot
	})
	if i < 0 {
		return nil
	}
	heir := open[i]
	if _, err := c.exec(`UPDATE flows SET request = ? WHERE request = ? AND status <> 'spent'`, heir.ID, r.ID); err != nil {
		return err
	}
	if r.Status == auth.StatusExchanging {
		_, err = c.exec(`UPDATE requests SET status = 'exchanging' WHERE id = ?`, heir.ID)
	}
	return err
}

// deny ends what the page of a flow showed. The slot is locked.
func (c *conn) deny(f oauth.Flow, r auth.Request, reason string) error {
	shown, err := c.requests(`link = ? AND slot = ? AND `+isOpen+` AND (seq <= (SELECT seen FROM flows WHERE state_hash = ?)
		OR id = ? AND 0 = (SELECT seen FROM flows WHERE state_hash = ?)) ORDER BY seq`, r.Leader, r.Need.Slot.ID(), f.StateHash, r.ID, f.StateHash)
	if err != nil {
		return err
	}
	for _, o := range shown {
		if err := c.end(o, auth.StatusDenied, reason); err != nil {
			return err
		}
		if err := c.tell(o, auth.StatusDenied); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(shown, func(o auth.Request) bool { return o.ID == r.ID }) {
		return nil
	}
	// All that was shown has ended, and the flow was handed to a request that came later.
	return c.reopen(f, r, reason)
}
