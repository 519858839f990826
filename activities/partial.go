package activities

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/session"
	"tarry/wire"
)

// pieces tells those who read along what a model says while it says it. The methods of nil do nothing. What goes wrong here
// costs pieces, never the answer.
type pieces struct {
	a *Activities
	t *attempt
	// of is the event that will hold the answer; every piece has its invocation, author, branch and scope.
	of session.NewEvent
	// told is what earlier attempts have told and this one has not said again yet.
	told []*genai.Part
	// silent: this attempt says something else than an earlier one, or pieces cannot be stored.
	silent bool
	held   []*genai.Part
	n      int
	last   time.Time
	any    bool // pieces were told
	// thought: some of them by the model to itself.
	thought bool
}

// pieces returns nil where nobody reads along, and where the answer may become another before it is stored: readers must not
// see what a callback takes out, nor a form that is asked for again.
func (a *Activities) pieces(ctx context.Context, t *attempt, in wire.ModelInput, turn turn) *pieces {
	if a.Partials == nil || !t.row.Streaming || turn.output != nil || turn.planned || turn.hooks.has(agent.AfterModel, agent.OnModelError) {
		return nil
	}
	of := t.place([]session.NewEvent{{Event: session.Event{ID: t.id(wire.RoleEvent), InvocationID: turn.invocation, Author: in.Agent, Partial: true}}})[0]
	p := &pieces{a: a, t: t, of: of}
	if t.number > 1 {
		p.remember(ctx)
	}
	return p
}

// remember reads what earlier attempts have told.
func (p *pieces) remember(ctx context.Context) {
	all, err := p.a.Partials.Partials(ctx, p.t.row, 0)
	if err != nil {
		p.fail(ctx, err)
		return
	}
	for _, piece := range all {
		var e session.Event
		if piece.Of != p.of.ID || json.Unmarshal(piece.Body, &e) != nil || e.Content == nil {
			continue
		}
		p.told, p.any = joined(p.told, e.Content.Parts...), true
	}
}

// say takes the next piece of an answer.
func (p *pieces) say(ctx context.Context, c *genai.Content) {
	if p == nil || p.silent || c == nil {
		return
	}
	for _, part := range c.Parts {
		if part != nil && part.Text != "" {
			p.add(part.Thought, part.Text)
		}
	}
	if len(p.held) == 0 || p.silent || time.Since(p.last) < p.a.PartialEvery {
		return
	}
	p.n++
	e := p.of.Event
	if !p.thought { // as in ADK; where there are thoughts its web UI finds what the answer replaces by the answer's id alone
		e.ID = p.t.id("partial/" + strconv.Itoa(int(p.t.number)) + "/" + strconv.Itoa(p.n))
	}
	e.Content = &genai.Content{Role: genai.RoleModel, Parts: p.held}
	if err := p.a.Partials.AddPartial(ctx, p.t.row, p.of.ID, e); err != nil {
		p.fail(ctx, err)
		return
	}
	p.held, p.last, p.any = nil, time.Now(), true
}

// add holds a text, less what was told before.
func (p *pieces) add(thought bool, text string) {
	p.thought = p.thought || thought
	for text != "" && len(p.told) > 0 {
		next := p.told[0]
		n := min(len(next.Text), len(text))
		if next.Thought != thought || next.Text[:n] != text[:n] {
			p.silent = true // two answers in one would be worse than the rest of this one at once
			return
		}
		text = text[n:]
		if next.Text = next.Text[n:]; next.Text == "" {
			p.told = p.told[1:]
		}
	}
	if text != "" {
		p.held = joined(p.held, &genai.Part{Text: text, Thought: thought})
	}
}

func (p *pieces) fail(ctx context.Context, err error) {
	p.silent = true
	if ctx.Err() == nil {
		p.a.Slog.WarnContext(ctx, "partial answer is not shown", "session_id", p.t.row.ID, "err", err)
	}
}

// whole is the event whose pieces were told, by this attempt or an earlier one; empty if none were.
func (p *pieces) whole() string {
	if p == nil || !p.any {
		return ""
	}
	return p.of.ID
}

// joined appends texts, neighbours of one kind as one part.
func joined(parts []*genai.Part, more ...*genai.Part) []*genai.Part {
	for _, part := range more {
		if n := len(parts); n > 0 && parts[n-1].Thought == part.Thought {
			parts[n-1].Text += part.Text
			continue
		}
		parts = append(parts, &genai.Part{Text: part.Text, Thought: part.Thought})
	}
	return parts
}
