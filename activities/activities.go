package activities

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"tarry/agent"
	"tarry/auth"
	"tarry/callbacks"
	"tarry/models"
	"tarry/session"
	"tarry/tools"
	"tarry/wire"
)

// Definitions finds published definitions.
type Definitions interface {
	Definition(ctx context.Context, hash string) (*agent.Definition, error)
}

// Listings keeps what toolsets offered.
type Listings interface {
	SaveListing(ctx context.Context, row session.Session, id, toolset string, body []byte) error
	Listing(ctx context.Context, row session.Session, id string) (toolset string, body []byte, err error)
}

// Inputs seals what is wanted of people besides logins. Package auth/inputs has one.
type Inputs interface {
	// Check says whether a question can be put to a person.
	Check(q auth.Question) error
	Seal(r auth.Request, q auth.Question) ([]byte, error)
	// Answers opens the question of an answered request, with every answer to it.
	Answers(r auth.Request) (auth.Question, map[string]auth.InputAnswer, error)
	SealConfirmation(r auth.Request, c auth.Confirmation) ([]byte, error)
	// CheckPrompt says whether answers to a tool's question can be checked.
	CheckPrompt(p auth.Prompt) error
	SealPrompt(r auth.Request, p auth.Prompt) ([]byte, error)
	// Said opens what was answered to a tool's question, or came of a long-running call.
	Said(r auth.Request) (json.RawMessage, error)
	// Consent opens what a granted request has approved, and what the person said besides.
	Consent(r auth.Request) (auth.Confirmation, auth.Consent, error)
}

// Requests opens and closes questions to people. See store.Ask for what an implementation must lock.
type Requests interface {
	// RequestOf returns a request of a session; [auth.ErrNoRequest] when it has none of that id.
	RequestOf(ctx context.Context, row session.Session, id string) (auth.Request, error)
	// Answered returns the newest granted request of a slot in a session; false when there is none.
	Answered(ctx context.Context, row session.Session, slot auth.Slot) (auth.Request, bool, error)
	// AllAnswered returns all of them, in the order in which they were asked.
	AllAnswered(ctx context.Context, row session.Session, slot auth.Slot) ([]auth.Request, error)
	// Ask calls event, if it opens the request, with the link known.
	Ask(ctx context.Context, a session.Append, r auth.Request, event func(auth.Request) (session.NewEvent, error)) (auth.Asked, error)
	CloseRequest(ctx context.Context, row session.Session, id string) (auth.Status, error)
	// Remind writes down a reminder of a pending request, and the event that event makes of it. a says who appends.
	Remind(ctx context.Context, a session.Append, id string, event func(auth.Request) session.NewEvent) error
	// Queued says whether a message is queued, and whether an answer to the invocation's requests is on its way.
	Queued(ctx context.Context, row session.Session, invocation string) (message, answer bool, err error)
	// WithdrawRequest closes the request of a call that was cancelled, unless another open call of the session waits for it;
	// closed says that it is cancelled now.
	WithdrawRequest(ctx context.Context, row session.Session, id string) (closed bool, err error)
}

// Config is what activities work with. Every field is required unless it says otherwise.
type Config struct {
	Log         session.Log
	Definitions Definitions
	Listings    Listings
	Requests    Requests
	Artifacts   session.Artifacts
	Memory      session.Memory
	// Inputs may be nil; then the model is told of a server that wants something of a person, and that a call which needs an
	// approval cannot run.
	Inputs Inputs
	// Partials may be nil; then nobody reads along while a model answers.
	Partials session.Partials
	// PartialEvery is how often a piece of an answer is stored at most, since each is a commit; 0 means 100 ms.
	PartialEvery time.Duration
	Models       *models.Registry
	// Callbacks may be empty.
	Callbacks callbacks.Set
	// Functions are the application's Go tools, Builtins those of Tarry.
	Functions *tools.Registry
	Builtins  *tools.Registry
	Toolsets  tools.Opener
	// Broker makes the broker of one attempt.
	Broker func(owner agent.Owner, use Use, scrub *auth.Scrubber) auth.Broker
	// Link is the address at which a person answers a request.
	Link func(r auth.Request) string
	// MaxResult bounds a stored tool result, in bytes of JSON; 0 means 1 MiB.
	MaxResult int
	Now       func() time.Time
	// Slog is used for causes that must not stand in histories.
	Slog *slog.Logger
	// Fault, if set, is called at named points; tests hold a process there.
	Fault func(ctx context.Context, point string)
}

// Use says who uses a credential, for the audit log.
type Use struct {
	Session string
	Agent   string
	Tool    string
}

// Activities are the activities of a worker.
type Activities struct {
	Config
	views       *session.Views
	definitions sync.Map // hash → *agent.Definition; immutable
}

const (
	defaultMaxResult = 1 << 20
	partialEvery     = 100 * time.Millisecond // people read no faster
)

// New checks the configuration.
func New(c Config) (*Activities, error) {
	if c.Log == nil || c.Definitions == nil || c.Listings == nil || c.Requests == nil || c.Artifacts == nil || c.Memory == nil || c.Models == nil || c.Functions == nil ||
		c.Builtins == nil || c.Toolsets == nil || c.Broker == nil || c.Link == nil || c.Now == nil || c.Slog == nil {
		return nil, errors.New("activities: a required field of Config is missing")
	}
	if c.MaxResult == 0 {
		c.MaxResult = defaultMaxResult
	}
	if c.PartialEvery == 0 {
		c.PartialEvery = partialEvery
	}
	const cachedSessions = 256
	return &Activities{Config: c, views: session.NewViews(c.Log, cachedSessions)}, nil
}

// Registry is the part of a worker that activities are registered with.
type Registry interface {
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
	RegisterDynamicActivity(a any, options activity.DynamicRegisterOptions)
}

// Register registers every activity under its permanent name; tool calls go to the dynamic one.
func (a *Activities) Register(r Registry) {
	for name, f := range map[string]any{
		wire.ActivityTake:      a.Take,
		wire.ActivityListTools: a.ListTools,
		wire.ActivityCallModel: a.CallModel,
		wire.ActivityCallback:  a.Callback,
		wire.ActivityGuard:     a.Guard,
		wire.ActivityReturn:    a.Return,
		wire.ActivityEmit:      a.Emit,
		wire.ActivityOpen:      a.Open,
		wire.ActivityRead:      a.Read,
		wire.ActivityKeep:      a.Keep,
		wire.ActivityKept:      a.Kept,
		wire.ActivityClose:     a.Close,
		wire.ActivitySettle:    a.Settle,
		wire.ActivityMirror:    a.Mirror,
		wire.ActivityRemind:    a.Remind,
		wire.ActivityQueued:    a.Queued,
		wire.ActivityFinish:    a.Finish,
	} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
	r.RegisterDynamicActivity(a.dynamic, activity.DynamicRegisterOptions{})
}

func (a *Activities) dynamic(ctx context.Context, args converter.EncodedValues) (wire.ToolResult, error) {
	if name := activity.GetInfo(ctx).ActivityType.Name; !wire.IsToolActivity(name) {
		return wire.ToolResult{}, unknownActivity(name)
	}
	var in wire.ToolInput
	if err := args.Get(&in); err != nil {
		return wire.ToolResult{}, final("input of a tool call cannot be read")
	}
	return a.CallTool(ctx, in)
}

func (a *Activities) fault(ctx context.Context, point string) {
	if a.Fault != nil {
		a.Fault(ctx, point)
	}
}
