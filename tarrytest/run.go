package tarrytest

import (
	"context"
	"sync/atomic"
	"testing"

	"go.temporal.io/sdk/testsuite"
	"google.golang.org/genai"

	"tarry"
	"tarry/activities"
	"tarry/agent"
	"tarry/auth/inputs"
	"tarry/session"
	"tarry/store"
	"tarry/wire"
	"tarry/workflows"
)

// Run is a job that runs in the test's process, with all the runs that it continues as. Its methods are for the test's own
// goroutine.
type Run struct {
	t           testing.TB
	env         atomic.Pointer[testsuite.TestWorkflowEnvironment] // of the run at hand
	runs        atomic.Int64
	short       bool
	agents      workflows.Agents
	activities  *activities.Activities
	store       *store.Store
	inputs      *inputs.Service
	credentials *Credentials
	row         session.Session
	pauses      *pauses
	done        chan struct{}
	err         error
	ended       bool
	stuck       atomic.Bool
}

// Start runs a job of the app until it ends or until nothing is left to do but to wait, for a person or for what somebody else
// does. What is wrong with the app fails the test, and so does a run that goes on for a minute.
func Start(tb testing.TB, app tarry.App, task string, opts ...Option) *Run {
	tb.Helper()
	o := options{toolsets: Toolsets{}, credentials: &Credentials{}, owner: agent.Owner{User: "user"}}
	for _, opt := range opts {
		opt(&o)
	}
	r, in, err := build(tb, app, task, o)
	if err != nil {
		tb.Fatalf("tarrytest: %v", err)
	}
	go r.execute(in)
	tb.Cleanup(func() {
		if !r.ended && !r.stuck.Load() {
			r.Cancel()
		}
	})
	r.settle()
	return r
}

// Cancel ends a run that waits; it does nothing to one that has ended.
func (r *Run) Cancel() {
	r.t.Helper()
	if r.ended {
		return
	}
	r.env.Load().SignalWorkflow(wire.SignalCancel, wire.Cancel{})
	r.goOn()
}

// Outcome is how the run ended: "done", "failed", "cancelled", "limit" or "superseded"; empty while it waits.
func (r *Run) Outcome() string {
	r.t.Helper()
	if !r.ended {
		return ""
	}
	row, err := r.store.Session(context.Background(), r.row.Owner, r.row.ID)
	if err != nil {
		r.t.Fatalf("tarrytest: %v", err)
	}
	return row.Status
}

// Events lists what was said so far, as clients see it.
func (r *Run) Events() []*session.Record {
	r.t.Helper()
	all, err := r.store.Timeline(context.Background(), r.row.Owner, r.row.ID, 0)
	if err != nil {
		r.t.Fatalf("tarrytest: %v", err)
	}
	return all
}

// Answer is the last thing that an agent said in words.
func (r *Run) Answer() (text string) {
	r.t.Helper()
	for _, e := range r.Events() {
		if e.Speaks() && e.Text() != "" {
			text = e.Text()
		}
	}
	return text
}

// State is the session's state.
func (r *Run) State() map[string]any {
	r.t.Helper()
	state, err := r.store.State(context.Background(), r.row.Owner, r.row.ID)
	if err != nil {
		r.t.Fatalf("tarrytest: %v", err)
	}
	return state
}

// Artifacts are the newest versions of the artifacts that the run or its user has, by name.
func (r *Run) Artifacts() map[string]*genai.Part {
	r.t.Helper()
	names, err := r.store.ArtifactNames(context.Background(), r.row.Owner, r.row.ID)
	out := map[string]*genai.Part{}
	for _, name := range names {
		if err == nil {
			out[name], _, err = r.store.Artifact(context.Background(), r.row.Owner, r.row.ID, name, session.Latest)
		}
	}
	if err != nil {
		r.t.Fatalf("tarrytest: %v", err)
	}
	return out
}
