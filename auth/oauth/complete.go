package oauth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"tarry/auth"
)

// Callback is what a browser brought back from a provider, as values.
type Callback struct {
	// Digest is the last element of the path.
	Digest string
	State  string
	Code   string
	Error  string
	// Iss and IssPresent are the iss parameter (RFC 9207).
	Iss        string
	IssPresent bool
	// Cookies returns the value of the browser's cookie of that name, or nothing.
	Cookies func(name string) string
}

// Result is what became of the request.
type Result struct {
	Outcome auth.Status
	Request auth.Request
	// Missing lists scopes that were asked for and that the provider does not say it granted.
	Missing []string
	// Change is set while the request waits for its person to say whether another account replaces the one before.
	Change *Change
}

const (
	maxState = 512
	maxParam = 8 << 10
	// maxRefusals bounds what one login can have us write: whoever knows its state may send answers for ever. It is far
	// beyond what reloads and further tabs bring.
	maxRefusals = 32
	// refuseTimeout bounds the writing of one.
	refuseTimeout = 5 * time.Second
)

// Complete finishes the login that cb belongs to. With an error the request waits as before, unless Result says
// otherwise; a Result with a Request comes with errors too, so that the page can link to it. Errors for the page: those
// of this package, [auth.ErrUnavailable], [auth.ErrMisconfigured], [*ProviderError].
//
// The order of the steps is the security of this function. Nothing is changed before state, browser and user are proven;
// nothing is sent before the code is written ahead and the issuer is proven.
func (s *Service) Complete(ctx context.Context, access auth.Access, cb Callback) (Result, error) {
	f, err := s.flowOf(ctx, cb)
	if err != nil {
		return Result{}, err
	}
	if reason, err := s.prove(f, access, cb); err != nil {
		s.refuse(ctx, f, reason, cb.Code)
		return Result{}, err
	}
	out, err := s.outcome(ctx, access, f)
	if err != nil {
		return Result{}, fmt.Errorf("complete login: %w", err)
	}
	r := out.Request
	if !r.Status.Open() {
		return out, nil
	}
	if err := sound(r); err != nil {
		s.refuse(ctx, f, "damaged", cb.Code)
		return Result{Outcome: r.Status, Request: r}, err
	}
	still := Result{Outcome: r.Status, Request: r}
	switch {
	case f.Status == FlowParked: // the page is loaded again
		return s.change(ctx, still, f)
	case f.Status == FlowLive && !s.cfg.Now().Before(f.Expires):
		s.refuse(ctx, f, "expired", cb.Code)
		return still, ErrExpiredFlow
	case cb.Code == "" && cb.Error == "" || len(cb.Code) > maxParam:
		s.refuse(ctx, f, "incomplete", "")
		return still, ErrBadCallback
	}
	return s.exchangeOrWait(ctx, access, f, cb)
}

func (s *Service) flowOf(ctx context.Context, cb Callback) (Flow, error) {
	if cb.State == "" || len(cb.State) > maxState {
		return Flow{}, ErrUnknownState
	}
	f, err := s.cfg.Store.Flow(ctx, digest(cb.State))
	switch {
	case errors.Is(err, ErrNotFound):
		return Flow{}, ErrUnknownState
	case err != nil:
		return Flow{}, fmt.Errorf("complete login: %w", err)
	}
	return f, nil
}

// prove says whether this browser may finish this flow, and if not, why, in a word for the audit log.
func (s *Service) prove(f Flow, access auth.Access, cb Callback) (reason string, err error) {
	cookie := ""
	if cb.Cookies != nil {
		cookie = cb.Cookies(s.cookieName(f.StateHash))
	}
	switch {
	case !same(digest(cookie), f.CookieHash):
		return "browser", ErrWrongBrowser
	case !access(f.Owner):
		return "user", ErrWrongUser
	case !same(cb.Digest, CallbackDigest(CallbackIssuer(f.Provider))):
		// Each issuer has a path of its own: an answer on another's is that other's answer.
		return "path", ErrIssuer
	}
	return "", nil
}

// refuse changes nothing but this: the code that came along is never used, and a login with too many refusals is spent.
// A sender that goes away at once must not keep its code from being recorded.
func (s *Service) refuse(ctx context.Context, f Flow, reason, code string) {
	codeHash := ""
	if code != "" {
		codeHash = digest(code)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refuseTimeout)
	defer cancel()
	if err := s.cfg.Store.Refuse(ctx, f.StateHash, reason, codeHash, maxRefusals); err != nil {
		s.cfg.Log.ErrorContext(ctx, "record refused callback", "request_id", f.Request, "err", err)
	}
}

// exchangeOrWait is the compare-and-set: one callback goes on, the others wait for what it brings.
func (s *Service) exchangeOrWait(ctx context.Context, access auth.Access, f Flow, cb Callback) (Result, error) {
	a := answer{Code: cb.Code, Error: cb.Error, Iss: cb.Iss, IssPresent: cb.IssPresent}
	if len(a.Error) > maxParam {
		a.Error = a.Error[:maxParam]
	}
	sealed, err := s.sealAnswer(a, f)
	if err != nil {
		return Result{}, err
	}
	codeHash := ""
	if cb.Code != "" {
		codeHash = digest(cb.Code)
	}
	waiting, cancel := context.WithTimeout(ctx, s.cfg.ExchangeTimeout+leaseMargin)
	defer cancel()
	for attempt := 0; ; attempt++ {
		taken, err := s.cfg.Store.StartExchange(ctx, f.StateHash, sealed, codeHash, s.lease())
		if err == nil {
			s.cfg.Fault(ctx, FaultExchanging)
			return s.finish(ctx, access, taken, a)
		}
		if !errors.Is(err, ErrConflict) {
			return Result{}, fmt.Errorf("complete login: %w", err)
		}
		out, now, err := s.await(waiting, access, f)
		if err != nil || out.Outcome != auth.StatusPending {
			return out, err
		}
		switch {
		case now.Status == FlowParked:
			return s.change(ctx, out, now)
		case now.Status != FlowLive:
			return out, ErrSpentFlow
		case !s.cfg.Now().Before(now.Expires):
			return out, ErrExpiredFlow
		case attempt > 0:
			// Nothing is in its way but the code itself.
			return out, ErrRefusedCode
		}
	}
}

func (s *Service) lease() time.Duration { return s.cfg.ExchangeTimeout + leaseMargin }

// await returns when nobody completes a login of the flow's request any more, or when ctx ends; then the outcome is
// exchanging.
func (s *Service) await(ctx context.Context, access auth.Access, f Flow) (Result, Flow, error) {
	reading := context.WithoutCancel(ctx)
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		r, err := s.cfg.Store.Request(reading, f.Request, access)
		if err != nil {
			return Result{}, f, fmt.Errorf("await login: %w", err)
		}
		out := Result{Outcome: r.Status, Request: r}
		if r.Status != auth.StatusExchanging {
			now, err := s.cfg.Store.Flow(reading, f.StateHash)
			if err != nil {
				return out, f, fmt.Errorf("await login: %w", err)
			}
			return out, now, nil
		}
		if !pause(ctx, poll) {
			return out, f, nil
		}
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
