package engine

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"tarry/agent"
	"tarry/auth"
	"tarry/wire"
)

// ErrGone says that no run of the workflow is open.
var ErrGone = errors.New("engine: no such run")

// Config of an [Engine].
type Config struct {
	Client client.Client
	// Namespace is the client's; empty means "default".
	Namespace string
	// TaskQueue is that of the workers; empty means [wire.TaskQueue].
	TaskQueue string
	// UserKey is the HMAC key that keeps users out of workflow ids. It never changes: ids cannot.
	UserKey auth.Secret
	// Dev shortens timeouts, so that recovery from a killed worker takes seconds.
	Dev bool
	// ContinueAfter is the number of history events after which runs continue as new; 0 leaves it to the server.
	ContinueAfter int
}

// Engine steers sessions. Safe for concurrent use.
type Engine struct {
	Config
	attributes attributes
}

// New makes an engine.
func New(c Config) (*Engine, error) {
	if c.Client == nil || len(c.UserKey.Reveal()) < 32 {
		return nil, errors.New("engine: a client and a user key of at least 32 bytes are required")
	}
	if c.Namespace == "" {
		c.Namespace = client.DefaultNamespace
	}
	if c.TaskQueue == "" {
		c.TaskQueue = wire.TaskQueue
	}
	return &Engine{Config: c}, nil
}

// WorkflowID is the id of a session's workflow.
func (e *Engine) WorkflowID(owner agent.Owner, session string) string {
	mac := hmac.New(sha256.New, []byte(e.UserKey.Reveal()))
	fmt.Fprintf(mac, "%d:%s%s", len(owner.App), owner.App, owner.User)
	digest := strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(mac.Sum(nil)[:10]))
	return wire.WorkflowID(owner.App, digest, session)
}

// Timeouts of development.
const (
	devTask      = 3 * time.Second
	devHeartbeat = 5 * time.Second
)

// Message announces an inbox row, and starts the session's workflow if it does not run. It needs no worker.
func (e *Engine) Message(ctx context.Context, workflowID, inbox, definition string, plan agent.Plan, mode wire.Mode) error {
	has, err := e.HasSearchAttributes(ctx)
	if err != nil {
		return err
	}
	in := wire.SessionInput{Definition: definition, Plan: plan, Mode: mode, SearchAttributes: has, Timing: wire.Timing{ContinueAfter: e.ContinueAfter}}
	options := client.StartWorkflowOptions{
		ID:                       workflowID,
		TaskQueue:                e.TaskQueue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:            "session of app " + plan.App,
	}
	if e.Dev {
		options.WorkflowTaskTimeout = devTask
		in.Timing.Heartbeat = devHeartbeat
	}
	if has {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeApp).ValueSet(plan.App),
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeAgent).ValueSet(plan.Root.Name),
			temporal.NewSearchAttributeKeyKeyword(wire.AttributeStatus).ValueSet(string(wire.StateRunning)),
		)
	}
	_, err = e.Client.SignalWithStartWorkflow(ctx, workflowID, wire.SignalMessage, wire.Message{Inbox: inbox}, options, wire.WorkflowSession, in)
	if err != nil {
		return fmt.Errorf("announce message: %w", err)
	}
	return nil
}

// Signal sends a signal to whatever run of the workflow is open: without a run id it follows continue-as-new.
func (e *Engine) Signal(ctx context.Context, workflowID, name string, payload any) error {
	err := e.Client.SignalWorkflow(ctx, workflowID, "", name, payload)
	if gone(err) {
		return fmt.Errorf("signal %s: %w", name, ErrGone)
	}
	if err != nil {
		return fmt.Errorf("signal %s: %w", name, err)
	}
	return nil
}

// Cancel cancels an invocation, or with an empty id the session.
func (e *Engine) Cancel(ctx context.Context, workflowID, invocation string) error {
	return e.Signal(ctx, workflowID, wire.SignalCancel, wire.Cancel{Invocation: invocation})
}

// CancelCall cancels one tool call. A run that does not know the call ignores it.
func (e *Engine) CancelCall(ctx context.Context, workflowID, call string) error {
	return e.Signal(ctx, workflowID, wire.SignalCancel, wire.Cancel{Invocation: call, Call: call})
}

// Status asks the workflow itself; it needs a worker.
func (e *Engine) Status(ctx context.Context, workflowID string) (st wire.Status, err error) {
	value, err := e.Client.QueryWorkflow(ctx, workflowID, "", wire.QueryStatus)
	if gone(err) {
		return st, ErrGone
	}
	if err != nil {
		return st, fmt.Errorf("query status: %w", err)
	}
	if err := value.Get(&st); err != nil {
		return st, fmt.Errorf("read status: %w", err)
	}
	return st, nil
}

// Running says whether a run of the workflow is open; false also when it is unknown.
func (e *Engine) Running(ctx context.Context, workflowID string) (bool, error) {
	d, err := e.Client.DescribeWorkflow(ctx, workflowID, "")
	if gone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("describe workflow: %w", err)
	}
	return d.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

func gone(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}
