package main

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// target is a run on a server.
type target struct {
	client                   *client
	app, session, invocation string
}

// comeBack is how long after a lost connection the next attempt is made.
const comeBack = time.Second

// follow shows the invocation's events until it has ended and returns how it stands then. It goes on through waits, and
// comes back when the connection or the server is lost: the run does not depend on either, and the caller has just spoken
// to the server. A done ctx is an error.
func (t target) follow(ctx context.Context, lost func(), each func(entry) error) (*statusInfo, error) {
	var last int64
	for {
		complete, err := t.client.stream(ctx, t.app, t.session, t.invocation, last, func(e entry) error {
			last = max(last, e.seq)
			return each(e)
		})
		var away *unreachable
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() //nolint:wrapcheck // the caller branches on it
		case errors.As(err, &away), isStatus(err, http.StatusServiceUnavailable):
		case err != nil:
			return nil, err
		case complete:
			return t.client.status(ctx, t.app, t.session)
		}
		lost()
		if err := pause(ctx, comeBack); err != nil {
			return nil, err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller branches on it
	}
}

// watch follows a run for a person (or, with --json, a program), prints its answer and returns how it ended.
func (a *app) watch(ctx context.Context, t target) error {
	show := &progress{say: a.say}
	told := false
	lost := func() {
		if !told {
			told = true
			a.say("the connection is lost; the run goes on, and this comes back to it")
		}
	}
	st, err := t.follow(ctx, lost, func(e entry) error {
		told = false
		if a.json {
			return a.printJSON(struct {
				Seq   int64 `json:"seq"`
				Event any   `json:"event"`
			}{e.seq, e.raw})
		}
		show.event(&e.event)
		return nil
	})
	if ctx.Err() != nil {
		a.say("detached; the run goes on. Come back with: starter show %s --follow", t.session)
		return ended(exitWaiting)
	}
	if err != nil {
		return err
	}
	return a.conclude(st)
}

// conclude prints how a run ended.
func (a *app) conclude(st *statusInfo) error {
	if a.json {
		if err := a.printJSON(map[string]any{"status": st}); err != nil {
			return err
		}
		return ended(st.exit())
	}
	if st.Answer != "" {
		if err := a.print("%s", st.Answer); err != nil {
			return err
		}
	}
	switch code := st.exit(); {
	case code == exitDenied:
		a.say("done, but a login was denied or expired")
	case st.InvocationStatus == endingSuperseded:
		a.say("ended for a newer message")
	case code == exitCancelled:
		a.say("cancelled")
	case code == exitFailed && st.Error != "":
		a.say("failed: %s", st.Error)
	case code == exitFailed:
		a.say("failed")
	}
	return ended(st.exit())
}
