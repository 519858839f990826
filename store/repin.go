package store

import (
	"context"
	"maps"
	"slices"

	"tarry/auth"
	"tarry/auth/oauth"
)

// Repin implements [oauth.Store]. A request keeps its id and its link: what changes is who answers it.
func (s *Store) Repin(ctx context.Context, from auth.Slot, to auth.Need) (moved int, err error) {
	err = s.tx(ctx, func(c *conn) error {
		moved, err = c.repin(from, to)
		return err
	})
	return moved, err
}

func (c *conn) repin(from auth.Slot, to auth.Need) (moved int, err error) {
	if from.Owner != to.Slot.Owner || from == to.Slot {
		return 0, oauth.ErrConflict
	}
	slots := []auth.Slot{from, to.Slot}
	if from.ID() > to.Slot.ID() { // slots are locked in one order
		slots[0], slots[1] = slots[1], slots[0]
	}
	for _, slot := range slots {
		if err := c.lockSlot(slot); err != nil {
			return 0, err
		}
	}
	open, err := c.requests(`slot = ? AND `+isOpen+` ORDER BY seq`, from.ID())
	if err != nil {
		return 0, err
	}
	for _, r := range open {
		switch {
		case !r.Need.Movable || r.Owner != from.Owner || !sameAnswer(r.Need, to):
			continue
		case r.Status == auth.StatusExchanging:
			return 0, oauth.ErrConflict
		}
		if err := c.move(r, to); err != nil {
			return 0, err
		}
		moved++
	}
	if moved == 0 {
		return 0, oauth.ErrConflict
	}
	return moved, c.useCallback(to)
}

// sameAnswer says whether the server was asked for both needs: another server of the slot, or a definition that gives up
// other rules, may not get the same answer.
func sameAnswer(n, asked auth.Need) bool {
	return n.Server == asked.Server && slices.Equal(n.Relaxed, asked.Relaxed)
}

// move changes whom a request asks for the login. What was refused of the old provider says nothing about the new one.
func (c *conn) move(r auth.Request, to auth.Need) error {
	params := maps.Clone(r.Need.Client.Params)
	r.Need.Slot, r.Need.Provider, r.Need.Client, r.Need.Refused = to.Slot, to.Provider, to.Client, 0
	r.Need.Client.Params = params
	need, err := encode(r.Need)
	if err != nil {
		return err
	}
	slot := r.Need.Slot.ID()
	if _, err := c.exec(`UPDATE requests SET slot = ?, need = ? WHERE id = ?`, slot, need, r.ID); err != nil {
		return err
	}
	if err := c.spendFlows(r); err != nil {
		return err
	}
	if err := c.audit(r.Owner, r.Session, r.ID, auditMoved, to.Slot.Issuer); err != nil {
		return err
	}
	granted, err := c.granted(slot, r.Need)
	if err != nil || !granted {
		return err
	}
	if err := c.end(r, auth.StatusGranted, ""); err != nil {
		return err
	}
	return c.tell(r, auth.StatusGranted)
}
