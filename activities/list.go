package activities

import (
	"context"
	"encoding/json"
	"errors"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/wire"
)

// listing is what is stored of a toolset.
type listing struct {
	Tools []tools.Declaration `json:"tools"`
	// Failed says that the server could not be listed.
	Failed bool `json:"failed,omitempty"`
	// Full says that nobody was asked for the login that listing needs: the person has too much to answer already.
	Full bool `json:"full,omitempty"`
}

// ListTools lists one toolset, or asks for the login that listing needs.
func (a *Activities) ListTools(ctx context.Context, in wire.ListInput) (wire.ListResult, error) {
	defer heartbeat(ctx)()
	t, err := a.begin(ctx)
	if err != nil {
		return wire.ListResult{}, err
	}
	t.scope = in.Scope
	def := t.def.Toolset(in.Toolset)
	if def == nil {
		return wire.ListResult{}, final("the definition has no such toolset")
	}
	q := question{agent: in.Agent, functionCall: agent.ToolsetAuthPrefix + "McpToolset", parents: in.Heads, acted: in.Answered}
	for range maxMeanwhile {
		var scrub auth.Scrubber
		found, err := a.list(ctx, t, in, def, &scrub)
		if _, ok := required(err); ok && def.Lazy {
			return a.saveListing(ctx, t, in, lazyListing(def), &scrub)
		}
		if need, ok := required(err); ok {
			q.need = need.Need
			asked, err := a.ask(ctx, t, q)
			switch {
			case err != nil:
				return wire.ListResult{}, err
			case asked.Granted:
				continue
			case asked.Full:
				return a.saveListing(ctx, t, in, listing{Failed: true, Full: true}, &scrub)
			case asked.Often:
				a.Slog.WarnContext(ctx, "toolset cannot be listed", "toolset", in.Toolset, "session_id", t.row.ID, "err", "its server takes no credential that it is given")
				return a.saveListing(ctx, t, in, listing{Failed: true}, &scrub)
			case asked.Denied:
				return wire.ListResult{Asked: wire.Asked{Denied: true}}, nil
			}
			out := wire.ListResult{Asked: asked.wire()}
			if asked.Request.ID != t.callID(wire.RoleRequest) {
				out.Asking = "" // asked before: that event lies behind the heads, which must not go back to it
			}
			return out, nil
		}
		if err != nil {
			return wire.ListResult{}, err
		}
		return a.saveListing(ctx, t, in, found, &scrub)
	}
	return wire.ListResult{}, again("the credential changes as it is used", 0)
}

func (a *Activities) list(ctx context.Context, t *attempt, in wire.ListInput, def *agent.MCPToolset, scrub *auth.Scrubber) (listing, error) {
	found, err := a.declarations(ctx, t, in, def, scrub)
	if err == nil {
		return listing{Tools: withoutConnect(def, found)}, nil
	}
	var told *tools.Error
	_, asks := required(err)
	switch {
	case ctx.Err() != nil:
		return listing{}, ctx.Err() //nolint:wrapcheck // the SDK compares it; err may name a URL
	case asks:
		return listing{}, err
	case errors.Is(err, auth.ErrMisconfigured):
		a.Slog.ErrorContext(ctx, "credential cannot be had", "toolset", in.Toolset, "session_id", t.row.ID, "err", scrub.Scrub(reasonOf(err)))
		return listing{Failed: true}, nil
	case errors.As(err, &told), t.number >= listAttempts:
		a.Slog.WarnContext(ctx, "toolset cannot be listed", "toolset", in.Toolset, "session_id", t.row.ID, "err", scrub.Scrub(reasonOf(err)))
		return listing{Failed: true}, nil
	default:
		a.Slog.WarnContext(ctx, "list tools", "toolset", in.Toolset, "attempt", t.number, "err", scrub.Scrub(err.Error()))
		return listing{}, again("the toolset's server does not answer", 0)
	}
}

func (a *Activities) declarations(ctx context.Context, t *attempt, in wire.ListInput, def *agent.MCPToolset, scrub *auth.Scrubber) (found []tools.Declaration, err error) {
	defer a.recovered(ctx, in.Toolset, &err, tools.Errorf("the toolset failed: internal error"))
	broker := a.Broker(t.row.Owner, Use{Session: t.row.ID, Agent: in.Agent, Tool: in.Toolset}, scrub)
	toolset, err := a.Toolsets.Open(ctx, def, t.row.Owner, broker)
	if err != nil {
		return nil, err //nolint:wrapcheck // classified by the caller
	}
	return toolset.List(ctx) //nolint:wrapcheck // classified by the caller
}

func (t *attempt) listID(toolset string) string { return t.id(wire.RoleEvent)[:8] + "-" + toolset }

func (a *Activities) storeListing(ctx context.Context, t *attempt, toolset string, found listing, scrub *auth.Scrubber) (string, error) {
	body, err := json.Marshal(found)
	if err != nil {
		return "", final("listing cannot be stored")
	}
	id := t.listID(toolset)
	if err := a.Listings.SaveListing(ctx, t.row, t.row.WorkflowID+" "+id, toolset, []byte(scrub.Scrub(string(body)))); err != nil {
		return "", a.failed(ctx, "store listing", err)
	}
	return id, nil
}

func (a *Activities) saveListing(ctx context.Context, t *attempt, in wire.ListInput, found listing, scrub *auth.Scrubber) (wire.ListResult, error) {
	id, err := a.storeListing(ctx, t, in.Toolset, found, scrub)
	if err != nil {
		return wire.ListResult{}, err
	}
	if in.Answered != "" {
		done := t.append()
		done.Acted, done.Status = in.Answered, string(wire.StateRunning)
		if _, err := a.Log.Append(ctx, done); err != nil {
			return wire.ListResult{}, a.failed(ctx, "record that the login was used", err)
		}
	}
	return wire.ListResult{List: id, Failed: found.Failed}, nil
}
