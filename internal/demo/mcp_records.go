package demo

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
)

// IdempotencyMeta is the key in _meta of a tools/call under which the caller's idempotency key is recorded.
const IdempotencyMeta = "tarry/idempotencyKey"

// ToolCall is a tools/call that was let in.
type ToolCall struct {
	Tool      string
	Arguments json.RawMessage
	// User and ClientID are those of the token.
	User, ClientID string
	// IdempotencyKey is empty if the caller sent none.
	IdempotencyKey string
	// Done says that the tool has run to its end; a call that is held before its effect is not done.
	Done bool
}

// Effect is something that a tool has changed. The server does not look at idempotency keys: two calls are two effects.
type Effect struct {
	// Kind is "plan", "comment" or "publication".
	Kind, ID, Text string
	// Subject is the ticket of a comment or the plan of a publication.
	Subject        string
	User           string
	IdempotencyKey string
}

// MCPRequest is a request to the endpoint, refused ones included.
type MCPRequest struct {
	HTTPMethod string
	// Method is the JSON-RPC method, Tool the name in a tools/call.
	Method, Tool string
	// User is empty for requests without a valid token.
	User   string
	Status int
}

// Calls returns the calls of tool in the order of arrival; of all tools if tool is empty.
func (m *MCPServer) Calls(tool string) []ToolCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []ToolCall
	for _, c := range m.calls {
		if tool == "" || c.Tool == tool {
			out = append(out, c)
		}
	}
	return out
}

// Effects returns what the tools have changed.
func (m *MCPServer) Effects() []Effect {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.effects)
}

// Requests returns the requests whose answer is complete.
func (m *MCPServer) Requests() []MCPRequest {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// SetBefore sets a hook that runs in a call of tool before its effect, and SetAfter one after the effect and before
// the answer. nil removes it. A hook that returns because its context is done keeps the tool from running.
func (m *MCPServer) SetBefore(tool string, hook func(context.Context, ToolCall)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before[tool] = hook
}

// SetAfter sets a hook; see SetBefore.
func (m *MCPServer) SetAfter(tool string, hook func(context.Context, ToolCall)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.after[tool] = hook
}

// HoldBefore holds calls of tool before their effect until the gate is opened.
func (m *MCPServer) HoldBefore(tool string) *Gate {
	g := NewGate()
	m.SetBefore(tool, func(ctx context.Context, _ ToolCall) { g.Pass(ctx) })
	return g
}

// HoldAfter holds calls of tool between effect and answer until the gate is opened.
func (m *MCPServer) HoldAfter(tool string) *Gate {
	g := NewGate()
	m.SetAfter(tool, func(ctx context.Context, _ ToolCall) { g.Pass(ctx) })
	return g
}

// Slow is the gate of the tool "slow", closed at first.
func (m *MCPServer) Slow() *Gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.slow
}

// HoldSlow closes "slow" again with a new gate.
func (m *MCPServer) HoldSlow() *Gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.slow = NewGate()
	return m.slow
}

// arrive records a call and returns its place.
func (m *MCPServer) arrive(c ToolCall) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls = append(m.calls, c)
	return len(m.calls) - 1
}

func (m *MCPServer) done(i int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls[i].Done = true
}

func (m *MCPServer) hooks(tool string) (before, after func(context.Context, ToolCall)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before[tool], m.after[tool]
}

// effect records e and returns its id.
func (m *MCPServer) effect(e Effect) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	e.ID = e.Kind + "-" + strconv.Itoa(len(m.effects)+1)
	m.effects = append(m.effects, e)
	return e.ID
}
