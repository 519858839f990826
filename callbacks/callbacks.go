package callbacks

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
	"tarry/tools"
)

// The kinds of callbacks. Those of a list run in its order, and the first result that is not nil wins: the others do not
// run. A callback may run again when an attempt was cut off, so it should be idempotent; once the event of a call is
// stored, none of them runs for it again. An error (or a panic) ends the invocation for an agent or a model call, and is answered to
// the model, without its text, for a tool call. Callbacks are called from many goroutines.
type (
	// BeforeAgent may answer in the agent's place: then the agent does not run, and neither does AfterAgent.
	BeforeAgent func(ctx context.Context, c *Context) (*genai.Content, error)
	// AfterAgent may say something more once the agent has run.
	AfterAgent func(ctx context.Context, c *Context) (*genai.Content, error)
	// BeforeModel may change the request, or answer in the model's place: then neither the model nor AfterModel runs.
	BeforeModel func(ctx context.Context, c *Context, req *models.Request) (*models.Response, error)
	// AfterModel may replace a response, also one of OnModelError.
	AfterModel func(ctx context.Context, c *Context, resp *models.Response) (*models.Response, error)
	// OnModelError may answer in place of a model that failed for good: what passes is retried first.
	OnModelError func(ctx context.Context, c *Context, req *models.Request, err error) (*models.Response, error)
	// BeforeTool may answer in the tool's place: then the tool does not run. It cannot change the arguments, which a person
	// may have approved. It runs again for a call that waited for a login.
	BeforeTool func(ctx context.Context, c *Context, call tools.Call) (map[string]any, error)
	// AfterTool may replace the response, also one of BeforeTool or OnToolError.
	AfterTool func(ctx context.Context, c *Context, call tools.Call, response map[string]any) (map[string]any, error)
	// OnToolError may answer in place of a tool that failed for good. Questions to a person are no failures.
	OnToolError func(ctx context.Context, c *Context, call tools.Call, err error) (map[string]any, error)
)

// Set holds an application's callbacks by the names that agents use. It must not change once a worker has it. The zero
// value holds none.
type Set struct {
	BeforeAgent  map[string]BeforeAgent
	AfterAgent   map[string]AfterAgent
	BeforeModel  map[string]BeforeModel
	AfterModel   map[string]AfterModel
	OnModelError map[string]OnModelError
	BeforeTool   map[string]BeforeTool
	AfterTool    map[string]AfterTool
	OnToolError  map[string]OnToolError
}

// Names lists what is registered for a point, sorted.
func (s Set) Names(p agent.CallbackPoint) []string {
	switch p {
	case agent.BeforeAgent:
		return slices.Sorted(maps.Keys(s.BeforeAgent))
	case agent.AfterAgent:
		return slices.Sorted(maps.Keys(s.AfterAgent))
	case agent.BeforeModel:
		return slices.Sorted(maps.Keys(s.BeforeModel))
	case agent.AfterModel:
		return slices.Sorted(maps.Keys(s.AfterModel))
	case agent.OnModelError:
		return slices.Sorted(maps.Keys(s.OnModelError))
	case agent.BeforeTool:
		return slices.Sorted(maps.Keys(s.BeforeTool))
	case agent.AfterTool:
		return slices.Sorted(maps.Keys(s.AfterTool))
	case agent.OnToolError:
		return slices.Sorted(maps.Keys(s.OnToolError))
	}
	return nil
}

// All lists the names for every point, as files of agents are checked against.
func (s Set) All() map[agent.CallbackPoint][]string {
	out := map[agent.CallbackPoint][]string{}
	for _, p := range agent.CallbackPoints() {
		out[p] = s.Names(p)
	}
	return out
}

// Context is what a callback knows of the call. It belongs to one goroutine and must not be kept.
type Context struct {
	Owner      agent.Owner
	Session    string
	Invocation string
	Agent      string
	// State is a copy of the session's state, with what callbacks of the same call have set.
	State map[string]any
	// Args is what the definition gives the callback: a JSON object, or empty.
	Args json.RawMessage

	delta map[string]any
}

// Set changes the session's state: the value, which must be JSON, is stored with the event of the call.
func (c *Context) Set(key string, value any) {
	if c.delta == nil {
		c.delta = map[string]any{}
	}
	if c.State == nil {
		c.State = map[string]any{}
	}
	c.delta[key], c.State[key] = value, value
}

// Delta is what was set.
func (c *Context) Delta() map[string]any { return maps.Clone(c.delta) }
