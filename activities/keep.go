package activities

import (
	"context"

	"tarry/wire"
)

// keptToolset marks, among listings, what workflows keep.
const keptToolset = "@kept"

// Keep stores what is too long to be carried from run to run. It is a local activity.
func (a *Activities) Keep(ctx context.Context, in wire.KeepInput) (wire.KeepResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.KeepResult{}, err
	}
	id := t.id(wire.RoleEvent)
	if err := a.Listings.SaveListing(ctx, t.row, t.row.WorkflowID+" "+id, keptToolset, in.Body); err != nil {
		return wire.KeepResult{}, a.failed(ctx, "keep journal", err)
	}
	return wire.KeepResult{Kept: id}, nil
}

// Kept reads a part of what was kept. It is a local activity.
func (a *Activities) Kept(ctx context.Context, in wire.KeptInput) (wire.KeptResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.KeptResult{}, err
	}
	toolset, body, err := a.Listings.Listing(ctx, t.row, t.row.WorkflowID+" "+in.Kept)
	if err != nil {
		return wire.KeptResult{}, a.failed(ctx, "read journal", err)
	}
	if toolset != keptToolset {
		return wire.KeptResult{}, final("what is kept under that name is no journal")
	}
	from := min(in.Part*wire.KeptPart, len(body))
	to := min(from+wire.KeptPart, len(body))
	return wire.KeptResult{Body: body[from:to], More: to < len(body)}, nil
}
