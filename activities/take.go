package activities

import (
	"context"
	"slices"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
	"tarry/wire"
)

// Take moves the next message of the inbox into the log.
func (a *Activities) Take(ctx context.Context, in wire.TakeInput) (wire.TakeResult, error) {
	t, err := a.begin(ctx)
	if err != nil {
		return wire.TakeResult{}, err
	}
	take := func() (*session.Record, string, error) {
		if in.Original == "" || in.Original == t.run {
			return a.Log.Take(ctx, t.row, t.run, t.id(wire.RoleEvent), in.Heads)
		}
		return a.Log.Retake(ctx, t.row, t.run, t.id(wire.RoleEvent), in.Heads, in.Announced)
	}
	record, inbox, err := take()
	if err != nil {
		return wire.TakeResult{}, a.failed(ctx, "take message", err)
	}
	if record == nil {
		return wire.TakeResult{}, nil
	}
	out := wire.TakeResult{Inbox: inbox, Invocation: record.InvocationID, Event: record.ID}
	if t.def.Transfers() {
		view, err := a.views.View(ctx, t.row, []string{record.ID})
		if err != nil {
			return wire.TakeResult{}, a.failed(ctx, "read session", err)
		}
		out.Agent = answering(t.def, view)
	}
	return out, nil
}

// answering is the agent that answers the last message of a view, as ADK chooses it: the one whose call the message answers;
// else the last one that spoke and can hand back to the root; else the root, which is empty.
func answering(def *agent.Definition, view []*session.Record) string {
	last := view[len(view)-1]
	for _, response := range last.Responses() {
		for _, r := range slices.Backward(view) {
			if slices.ContainsFunc(r.Calls(), func(c *genai.FunctionCall) bool { return c.ID == response.ID }) && def.Converses(r.Author) {
				return other(def, r.Author)
			}
		}
	}
	for _, r := range slices.Backward(view) {
		if r.IsolationScope == "" && r.Author != agent.UserAuthor && def.Resumes(r.Author) {
			return other(def, r.Author)
		}
	}
	return ""
}

// other leaves the root out.
func other(def *agent.Definition, name string) string {
	if name == def.Root.Name {
		return ""
	}
	return name
}
