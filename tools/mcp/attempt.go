package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"tarry/auth"
)

type attemptKey struct{}

// attempt is one List or Call on its way: whose broker its requests use, and what became of them. It travels in the
// context of its requests; safe for concurrent use.
type attempt struct {
	// ctx is the caller's. Brokers get it, so that their time is not taken from the connect timeout.
	ctx  context.Context
	want auth.Want
	// visited are the URLs that the person was shown for the call. Set before the call runs, not changed after.
	visited []string
	// life ends when the caller has its answer.
	life context.Context
	end  context.CancelFunc
	// noticed is closed when the server was told that the call is cancelled.
	noticed chan struct{}

	mu     sync.Mutex
	broker auth.Broker
	// refused is why no further request of this attempt makes sense.
	refused error
	calling bool
	outcome outcome
	watch   *time.Timer
	limit   time.Duration
	// cancel ends the requests of a call, abandoned says that we did.
	cancel    context.CancelCauseFunc
	abandoned bool
}

// outcome of the requests of a phase.
type outcome struct {
	status int            // of the last answer
	wire   *jsonrpc.Error // of an answer that was not 2xx
	fault  error          // of the transport
	sent   bool           // a server may have acted on it
}

func newAttempt(ctx, life context.Context, broker auth.Broker, want auth.Want) *attempt {
	a := &attempt{ctx: ctx, broker: broker, want: want, noticed: make(chan struct{})}
	a.life, a.end = context.WithCancel(life)
	return a
}

func attemptFrom(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// over says that no broker may be asked any more.
func (a *attempt) over() bool { return a == nil || a.life.Err() != nil }

// canceled says that what is sent now can only be the notice of it.
func (a *attempt) canceled() bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.abandoned || a.ctx.Err() != nil || a.life.Err() != nil
}

// abandon gives up waiting for a silent server, which go-sdk then tells.
func (a *attempt) abandon() {
	a.mu.Lock()
	a.outcome.fault, a.abandoned = errSilent, true
	cancel := a.cancel
	a.mu.Unlock()
	if cancel != nil {
		cancel(errSilent)
	}
}

func (a *attempt) notice() {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.noticed:
	default:
		close(a.noticed)
	}
}

// wait returns when the server was told that the call is cancelled, or does not listen.
func (a *attempt) wait() {
	select {
	case <-a.noticed:
	case <-time.After(partingTimeout):
	}
}

// requests is the context for requests of the attempt. It ends with the caller's, but not when the caller has its answer:
// the rest of a stream is still read then, or the TCP connection would be lost. Call release at the end.
func (a *attempt) requests(ctx context.Context) (_ context.Context, cancel context.CancelCauseFunc, release func()) {
	detached, cancel := context.WithCancelCause(context.WithoutCancel(context.WithValue(ctx, attemptKey{}, a)))
	a.mu.Lock()
	a.cancel = cancel
	a.mu.Unlock()
	byCaller := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	byClose := context.AfterFunc(a.life, func() { cancel(ErrClosed) })
	return detached, cancel, func() {
		byCaller()
		byClose()
	}
}

// finish lets go of the broker: the context of a connection remembers the attempt that opened it.
func (a *attempt) finish() {
	a.end()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broker = nil
	if a.watch != nil {
		a.watch.Stop()
	}
}

// begin starts the phase in which a tool may run.
func (a *attempt) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.outcome, a.calling = outcome{}, true
}

func (a *attempt) result() (o outcome, calling bool, refused error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outcome, a.calling, a.refused
}

func (a *attempt) note(f func(*outcome)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(&a.outcome)
}

// refuse records the first reason to give up and returns it.
func (a *attempt) refuse(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.refused == nil {
		a.refused = err
	}
	return a.refused
}

// within calls expired after d, not counting the broker's time, until the returned function is called.
func (a *attempt) within(d time.Duration, expired func()) (stop func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.limit = d
	a.watch = time.AfterFunc(d, expired)
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.watch.Stop()
		a.watch = nil
	}
}

// heard starts the time of within anew: the server is there.
func (a *attempt) heard() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watch != nil && a.watch.Stop() {
		a.watch.Reset(a.limit)
	}
}

func (a *attempt) pause() (b auth.Broker, resume func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watch == nil || !a.watch.Stop() {
		return a.broker, func() {}
	}
	return a.broker, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.watch != nil {
			a.watch.Reset(a.limit)
		}
	}
}

// token asks the broker; the zero token means to send the request without one.
func (a *attempt) token(want auth.Want) (auth.AccessToken, error) {
	broker, resume := a.pause()
	defer resume()
	if broker == nil {
		return auth.AccessToken{}, nil
	}
	token, err := broker.Token(a.ctx, want)
	switch {
	case err == nil:
		return token, nil
	case errors.Is(err, auth.ErrNoToken):
		return auth.AccessToken{}, nil
	default:
		return auth.AccessToken{}, fmt.Errorf("token: %w", err)
	}
}

func (a *attempt) challenged(want auth.Want, c auth.Challenge) error {
	broker, resume := a.pause()
	defer resume()
	if broker == nil {
		return a.refuse(errNoBroker)
	}
	if err := broker.Challenged(a.ctx, want, c); err != nil {
		return a.refuse(err)
	}
	return nil
}
