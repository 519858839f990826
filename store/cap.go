package store

import (
	"tarry/agent"
	"tarry/auth"
)

// DefaultOpenRequests is how many questions to a person may wait for an answer in one app.
const DefaultOpenRequests = 100

// LimitRequests sets how many questions to a person may wait for an answer in one app; 0 means any number. Call it before use.
func (s *Store) LimitRequests(most int) { s.most = most }

// full says whether r would be one question too many for its person. Requests behind one link are one question, since one
// login answers them all; the result of a long-running call is no question. The caller has locked the session and the slot,
// and takes no lock but this one after them, so that nobody waits for somebody who waits for them.
func (c *conn) full(r auth.Request) (bool, error) {
	if c.most == 0 || r.Leader != r.ID || r.Need.Type == auth.TypeResult {
		return false, nil
	}
	if err := c.lockAsker(r.Owner); err != nil {
		return false, err
	}
	// The types of Need are inside its JSON; a result is known by its id, which is its call's.
	var open int
	err := c.get(`SELECT COUNT(DISTINCT link) FROM requests WHERE app = ? AND usr = ? AND `+isOpen+` AND id <> call`,
		[]any{r.Owner.App, r.Owner.User}, []any{&open})
	return open >= c.most, err
}

// lockAsker lets what is counted of a user in an app be counted by one transaction at a time.
func (c *conn) lockAsker(owner agent.Owner) error {
	var now int64
	err := c.get(`INSERT INTO askers (app, usr, touched) VALUES (?, ?, ?) ON CONFLICT (app, usr) DO UPDATE SET touched = excluded.touched RETURNING `+c.d.clock,
		[]any{owner.App, owner.User, c.now}, []any{&now})
	c.passed(now)
	return err
}
