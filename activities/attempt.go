package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"tarry/agent"
	"tarry/session"
	"tarry/wire"
)

// attempt is one attempt of one activity: who runs it, for which session.
type attempt struct {
	run, activity string
	local         bool
	number        int32
	row           session.Session
	def           *agent.Definition
	// scope is that of the events that the attempt appends: the call that an agent behind a tool answers.
	scope string
	// artifacts is what the attempt saves besides its event; nil where nothing of an application's runs.
	artifacts *artifacts
}

func (a *Activities) begin(ctx context.Context) (*attempt, error) {
	info := activity.GetInfo(ctx)
	t := &attempt{run: info.WorkflowExecution.RunID, activity: info.ActivityID, local: info.IsLocalActivity, number: info.Attempt}
	var err error
	if t.row, err = a.Log.ByWorkflow(ctx, info.WorkflowExecution.ID); err != nil {
		return nil, a.failed(ctx, "find session", err)
	}
	if t.def, err = a.definition(ctx, t.row.Definition); err != nil {
		return nil, a.failed(ctx, "find definition", err)
	}
	return t, nil
}

func (a *Activities) definition(ctx context.Context, hash string) (*agent.Definition, error) {
	if d, ok := a.definitions.Load(hash); ok {
		return d.(*agent.Definition), nil //nolint:forcetypeassert // only definitions are stored
	}
	d, err := a.Definitions.Definition(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", hash, err)
	}
	a.definitions.Store(hash, d)
	return d, nil
}

// id derives the id of what this activity makes in a role; every attempt derives the same.
func (t *attempt) id(role string) string {
	return wire.EventID(t.run, t.activity, t.local, role)
}

func (t *attempt) callID(role string) string {
	return wire.CallID(t.run, t.activity, t.local, role)
}

// append is the frame of an addition by this attempt.
func (t *attempt) append(events ...session.NewEvent) session.Append {
	return session.Append{Owner: t.row.Owner, Session: t.row.ID, Run: t.run, Events: t.place(events)}
}

// place puts events into the branches of their agents, and into the scope of the attempt.
func (t *attempt) place(events []session.NewEvent) []session.NewEvent {
	for i := range events {
		events[i].Branch = t.def.Branch(events[i].Author)
		if events[i].IsolationScope == "" {
			events[i].IsolationScope = t.scope
		}
	}
	return events
}

// stored returns the event that an earlier attempt stored in a role, or nil.
func (a *Activities) stored(ctx context.Context, t *attempt, role string) (*session.Record, error) {
	found, err := a.Log.Events(ctx, t.row, []string{t.id(role)})
	if err != nil {
		return nil, a.failed(ctx, "look for stored event", err)
	}
	if len(found) == 0 {
		return nil, nil //nolint:nilnil // none yet
	}
	return found[0], nil
}

// heartbeat keeps the server informed while ctx lives: it notices a dead worker by its absence, and a cancellation
// reaches ctx by its answer.
func heartbeat(ctx context.Context) (stop func()) {
	every := activity.GetInfo(ctx).HeartbeatTimeout / 3
	if every <= 0 {
		return func() {}
	}
	done, finished := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(finished)
		tick := time.NewTicker(min(every, time.Second))
		defer tick.Stop()
		for {
			select { // an activity that is quicker than the first tick needs none, and each is a write of Temporal's
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return func() {
		close(done)
		<-finished
	}
}
