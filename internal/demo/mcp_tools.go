package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Ticket is an entry of the made-up tracker.
type Ticket struct {
	ID       string `json:"id"`
	Title    string `json:"title"`
	Status   string `json:"status" jsonschema:"open or done"`
	Estimate int    `json:"estimate_days"`
	Blocks   string `json:"blocks,omitempty" jsonschema:"the ticket that waits for this one"`
}

// Tickets are what list_tickets returns.
func Tickets() []Ticket {
	return []Ticket{
		{ID: "REL-101", Title: "Rate limits per client", Status: "open", Estimate: 3},
		{ID: "REL-102", Title: "Export to CSV", Status: "done", Estimate: 2},
		{ID: "REL-103", Title: "Migrate the audit table", Status: "open", Estimate: 5, Blocks: "REL-104"},
		{ID: "REL-104", Title: "Audit page", Status: "open", Estimate: 4},
		{ID: "REL-105", Title: "Dark mode", Status: "open", Estimate: 1},
	}
}

type (
	listInput struct {
		Status string `json:"status,omitempty" jsonschema:"open or done; empty for all"`
	}
	listOutput struct {
		Tickets []Ticket `json:"tickets"`
	}
	ticketInput struct {
		ID string `json:"id" jsonschema:"ticket id such as REL-101"`
	}
	planInput struct {
		Title   string   `json:"title"`
		Tickets []string `json:"tickets,omitempty" jsonschema:"ticket ids in order"`
	}
	commentInput struct {
		Ticket string `json:"ticket" jsonschema:"ticket id"`
		Text   string `json:"text"`
	}
	publishInput struct {
		Plan string `json:"plan" jsonschema:"id that create_plan returned"`
	}
	bigInput struct {
		KB int `json:"kb,omitempty" jsonschema:"size in KiB, 64 by default, 8192 at most"`
	}
	noInput  struct{}
	idOutput struct {
		ID string `json:"id"`
	}
	textOutput struct {
		Text string `json:"text"`
	}
	whoOutput struct {
		User   string   `json:"user"`
		Client string   `json:"client"`
		Scopes []string `json:"scopes"`
	}
)

// caller is what a tool knows of its call.
type caller struct {
	call          ToolCall
	scopes        []string
	authorization string
}

// desk is where the tools of one boot work; life is closed with the server.
type desk struct {
	m      *MCPServer
	server *mcp.Server
	life   <-chan struct{}
}

// addTool wraps run with the record of the call and the hooks around its effect.
func addTool[In, Out any](d desk, t *mcp.Tool, run func(context.Context, caller, In) (Out, error)) {
	m := d.m
	mcp.AddTool(d.server, t, func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, Out, error) {
		var none Out
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-d.life:
				cancel()
			case <-ctx.Done():
			}
		}()
		c := newCaller(req)
		i := m.arrive(c.call)
		before, after := m.hooks(t.Name)
		if before != nil {
			before(ctx, c.call)
		}
		if ctx.Err() != nil {
			return nil, none, fmt.Errorf("call was given up: %w", ctx.Err())
		}
		out, err := run(ctx, c, in)
		if err != nil {
			return nil, none, err
		}
		m.done(i)
		if after != nil {
			after(ctx, c.call)
		}
		return nil, out, nil
	})
}

func newCaller(req *mcp.CallToolRequest) caller {
	c := caller{call: ToolCall{Tool: req.Params.Name, Arguments: slices.Clone(req.Params.Arguments)}}
	c.call.IdempotencyKey, _ = req.Params.Meta[IdempotencyMeta].(string)
	if req.Extra == nil {
		return c
	}
	c.authorization = req.Extra.Header.Get("Authorization")
	if info := req.Extra.TokenInfo; info != nil {
		c.call.User, c.scopes = info.UserID, info.Scopes
		c.call.ClientID, _ = info.Extra["client_id"].(string)
	}
	return c
}

func reads(name, text string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: text, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}
}

func writes(name, text string) *mcp.Tool {
	return &mcp.Tool{Name: name, Description: text, Annotations: &mcp.ToolAnnotations{DestructiveHint: new(bool)}}
}

func (m *MCPServer) addTools(life <-chan struct{}, s *mcp.Server) {
	d := desk{m: m, server: s, life: life}
	addTool(d, reads("list_tickets", "Lists the tickets of the next release."), listTickets)
	addTool(d, reads("get_ticket", "Returns one ticket."), getTicket)
	addTool(d, writes("create_plan", "Creates a release plan. Each call creates another."), m.createPlan)
	addTool(d, writes("add_comment", "Adds a comment to a ticket. Each call adds another."), m.addComment)
	addTool(d, writes("publish_plan", "Publishes a plan to everybody."), m.publishPlan)
	addTool(d, reads("whoami", "Tells whose account is used."), whoami)
	addTool(d, reads("slow", "Takes long."), m.runSlow)
	addTool(d, reads("big", "Returns a large text."), big)
	addTool(d, reads("fail", "Always fails."), fail)
	if m.cfg.LeakTool {
		addTool(d, reads("leak", "Returns the header it was called with."), leak)
	}
}

func listTickets(_ context.Context, _ caller, in listInput) (listOutput, error) {
	out := listOutput{Tickets: []Ticket{}}
	for _, t := range Tickets() {
		if in.Status == "" || t.Status == in.Status {
			out.Tickets = append(out.Tickets, t)
		}
	}
	return out, nil
}

func getTicket(_ context.Context, _ caller, in ticketInput) (Ticket, error) {
	return findTicket(in.ID)
}

func findTicket(id string) (Ticket, error) {
	for _, t := range Tickets() {
		if t.ID == id {
			return t, nil
		}
	}
	return Ticket{}, fmt.Errorf("there is no ticket %q", id)
}

func (m *MCPServer) createPlan(_ context.Context, c caller, in planInput) (idOutput, error) {
	text := in.Title
	if len(in.Tickets) > 0 {
		text += ": " + strings.Join(in.Tickets, ", ")
	}
	return idOutput{m.effect(Effect{Kind: "plan", Text: text, User: c.call.User, IdempotencyKey: c.call.IdempotencyKey})}, nil
}

func (m *MCPServer) addComment(_ context.Context, c caller, in commentInput) (idOutput, error) {
	if _, err := findTicket(in.Ticket); err != nil {
		return idOutput{}, err
	}
	e := Effect{Kind: "comment", Subject: in.Ticket, Text: in.Text, User: c.call.User, IdempotencyKey: c.call.IdempotencyKey}
	return idOutput{m.effect(e)}, nil
}

func (m *MCPServer) publishPlan(_ context.Context, c caller, in publishInput) (idOutput, error) {
	e := Effect{Kind: "publication", Subject: in.Plan, User: c.call.User, IdempotencyKey: c.call.IdempotencyKey}
	return idOutput{m.effect(e)}, nil
}

func whoami(_ context.Context, c caller, _ noInput) (whoOutput, error) {
	return whoOutput{User: c.call.User, Client: c.call.ClientID, Scopes: c.scopes}, nil
}

func (m *MCPServer) runSlow(ctx context.Context, _ caller, _ noInput) (textOutput, error) {
	m.Slow().Pass(ctx)
	if ctx.Err() != nil {
		return textOutput{}, fmt.Errorf("call was given up: %w", ctx.Err())
	}
	return textOutput{"done at last"}, nil
}

func big(_ context.Context, _ caller, in bigInput) (textOutput, error) {
	if in.KB <= 0 {
		in.KB = 64
	}
	const line = "All work and no play makes a release late, and so on and so forth.\n"
	size := min(in.KB, 8192) << 10
	return textOutput{strings.Repeat(line, size/len(line)+1)[:size]}, nil
}

func fail(context.Context, caller, noInput) (textOutput, error) {
	return textOutput{}, errors.New("this tool always fails")
}

func leak(_ context.Context, c caller, _ noInput) (textOutput, error) {
	return textOutput{"called with " + c.authorization}, nil
}
