package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/session"
)

// Patch implements [session.Log]. Each patch has the one before it for its only parent, and the next message has the newest one
// for a parent besides what the run says: so that a run's own view stays as it is, a reset takes no patch with it, and a patch
// brings nothing back that a reset has left behind.
func (s *Store) Patch(ctx context.Context, owner agent.Owner, id string, e session.Event) error {
	e.Author = agent.UserAuthor
	e.Actions = session.Actions{StateDelta: session.ClientDelta(e.Actions.StateDelta)}
	return s.tx(ctx, func(c *conn) error {
		row, at, err := c.lockedStand(byOwner, owner.App, owner.User, id)
		if err != nil {
			return err
		}
		n := session.NewEvent{Kind: session.KindPatch, Event: e}
		if at.patch != "" {
			n.Parents = []string{at.patch}
		}
		r, fresh, err := c.insertEvent(row, n)
		if err != nil || !fresh {
			return err
		}
		patched, err := mergedPatch(row.Patched, r.Actions.StateDelta)
		if err != nil {
			return err
		}
		at.tips = append(slices.DeleteFunc(at.tips, func(tip string) bool { return tip == at.patch }), r.ID)
		at.moved = true // by no run
		if err := c.applyScoped(owner, r.Actions.StateDelta); err != nil {
			return err
		}
		if _, err := c.exec(`UPDATE sessions SET patch = ?, patched = ? WHERE workflow_id = ?`, r.ID, patched, row.WorkflowID); err != nil {
			return err
		}
		return c.save(at, "")
	})
}

// mergedPatch adds a delta to what was patched before.
func mergedPatch(before, delta map[string]any) (string, error) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]any{}
	}
	for key, value := range delta {
		if !strings.HasPrefix(key, session.ScopeUser) {
			all[key] = value
		}
	}
	text, err := encode(all)
	if err == nil && len(text) > session.MaxPatched {
		return "", session.ErrLarge
	}
	return text, err
}

// withPatch adds the newest patch to the heads that a message follows, unless it is behind one of them. It is one of the tips
// until a message has followed it; a run that was reset may find that the one before it took that message.
func (c *conn) withPatch(at *stand, run string, heads []string) ([]string, error) {
	switch {
	case at.patch == "" || slices.Contains(heads, at.patch):
		return heads, nil
	case !slices.Contains(at.tips, at.patch):
		if at.tipsRun == run {
			return heads, nil
		}
		seen, err := c.seen(at.workflowID, heads)
		if err != nil || seen[at.patch] != nil {
			return heads, err
		}
	}
	return append(slices.Clone(heads), at.patch), nil
}
