package tarrytest

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/testsuite"

	"tarry"
	"tarry/agent"
	"tarry/auth"
	"tarry/session"
	"tarry/store"
	"tarry/wire"
)

// Run is a job that runs in the test's process. Its methods are for the test's own goroutine.
type Run struct {
	t         testing.TB
	env       *testsuite.TestWorkflowEnvironment
	store     *store.Store
	row       session.Session
	questions *questions
	pauses    *pauses
	done      chan struct{}
	err       error
	ended     bool
}

// patience bounds the time between two pauses of a run, on the real clock.
const patience = time.Minute

// Login is a credential that a run waits for.
type Login struct {
	Request       string
	Key           string
	Tool, Toolset string
	Scopes        []string
	Deadline      time.Time
}

// Start runs a job of the app until it ends or until nothing is left to do but to wait for a person. What is wrong with the
// app fails the test, and so does a run that goes on for a minute.
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
		if !r.ended {
			r.Cancel()
		}
	})
	r.settle()
	return r
}

func (r *Run) execute(in wire.SessionInput) {
	defer close(r.done)
	defer func() {
		if p := recover(); p != nil {
			r.err = panicError{p}
		}
	}()
	r.env.ExecuteWorkflow(wire.WorkflowSession, in)
	r.err = r.env.GetWorkflowError()
}

// settle waits until the run pauses or ends.
func (r *Run) settle() {
	r.t.Helper()
	select {
	case <-r.pauses.paused:
	case <-r.done:
		r.ended = true
		if r.err != nil {
			r.t.Fatalf("tarrytest: run: %v", r.err)
		}
	case <-time.After(patience):
		r.t.Fatalf("tarrytest: the run neither waits nor ends")
	}
}

// goOn lets a paused run act on the signals that were sent.
func (r *Run) goOn() {
	r.t.Helper()
	r.pauses.resume <- struct{}{}
	r.settle()
}

// Waiting lists the logins that the run waits for; none once it has ended.
func (r *Run) Waiting() []Login {
	if r.ended {
		return nil
	}
	var out []Login
	for _, q := range r.questions.pending() {
		out = append(out, Login{
			Request: q.ID, Key: q.Need.Key, Tool: q.Need.Tool, Toolset: q.Need.Toolset, Scopes: q.Need.Scopes, Deadline: q.Deadline,
		})
	}
	return out
}

// Grant gives the login that the run waits for under key, and lets it go on.
func (r *Run) Grant(key, token string) {
	r.t.Helper()
	asked := r.asked(key)
	var scopes []string
	for _, q := range asked {
		scopes = auth.Union(scopes, q.Need.Scopes)
	}
	r.questions.credentials.Grant(key, token, scopes...)
	r.resolve(asked, auth.StatusGranted)
}

// Deny refuses the login that the run waits for under key, and lets it go on.
func (r *Run) Deny(key string) {
	r.t.Helper()
	r.resolve(r.asked(key), auth.StatusDenied)
}

// Expire lets the clock run to the deadline of the login under key.
func (r *Run) Expire(key string) {
	r.t.Helper()
	for _, q := range r.asked(key) {
		if q.Deadline.IsZero() {
			r.t.Fatalf("tarrytest: the login %q has no deadline", key)
		}
	}
	r.goOn()
}

// Cancel ends a run that waits.
func (r *Run) Cancel() {
	r.t.Helper()
	if r.ended {
		return
	}
	r.env.SignalWorkflow(wire.SignalCancel, wire.Cancel{})
	r.goOn()
}

func (r *Run) asked(key string) []auth.Request {
	r.t.Helper()
	var out []auth.Request
	for _, q := range r.questions.pending() {
		if q.Need.Key == key {
			out = append(out, q)
		}
	}
	if len(out) == 0 || r.ended {
		r.t.Fatalf("tarrytest: the run does not wait for the login %q; it waits for %v", key, r.Waiting())
	}
	return out
}

func (r *Run) resolve(asked []auth.Request, status auth.Status) {
	r.t.Helper()
	for _, q := range asked {
		r.questions.settle(q.ID, status)
		r.env.SignalWorkflow(wire.SignalResolved, wire.Resolved{Request: q.ID, Outcome: wire.Outcome(status)})
	}
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
