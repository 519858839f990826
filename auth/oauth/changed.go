package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tarry/auth"
	"tarry/auth/vault"
)

// ErrOtherAccount says that the slot holds a grant of another account of the person's.
var ErrOtherAccount = errors.New("oauth: login of another account")

// ParkingStore keeps the tokens of a login that was made with another account than the one before, until its person has said
// whether they replace it.
type ParkingStore interface {
	// Park moves an exchanging flow to parked, with the sealed grant in place of its code; its request is pending again, and
	// other logins may answer it. [ErrConflict] when the flow is not exchanging any more.
	Park(ctx context.Context, stateHash string, grant []byte) error
	// Unpark spends a parked flow and forgets its grant. [ErrConflict] when it is not parked any more.
	Unpark(ctx context.Context, stateHash, reason string) error
	// Parked lists the parked flows that have expired.
	Parked(ctx context.Context, limit int) ([]Flow, error)
}

// Change is a login with another account than the one that is connected, which its person has to confirm.
type Change struct {
	// Flow, From and To are shown, and come back in a [Choice].
	Flow     string
	From, To Account
	// Replaces is the id of the grant that would be replaced.
	Replaces string
}

// Choice is what a person said to a [Change].
type Choice struct {
	Flow string
	// Replaces is what the page said ([Change.Replaces]): another login may have come in between, and nobody has agreed to
	// replace that one.
	Replaces string
	// Replace is consent; anything else keeps the account that is connected.
	Replace bool
	// Cookies returns the value of the browser's cookie of that name, or nothing.
	Cookies func(name string) string
}

// parked is what a flow keeps of its exchange. The secrets are sealed as a whole, and not in it: a key that is replaced
// meanwhile must not be needed to open them.
type parked struct {
	Grant        Grant    `json:"grant"`
	Missing      []string `json:"missing,omitempty"`
	Access       string   `json:"access"`
	Refresh      string   `json:"refresh,omitempty"`
	IDToken      string   `json:"id_token,omitempty"`
	ClientSecret string   `json:"client_secret,omitempty"`
}

type parkedColumn struct {
	name   string
	plain  *string
	cipher *[]byte
}

func (p *parked) columns() []parkedColumn {
	return []parkedColumn{
		{columnAccess, &p.Access, &p.Grant.Access},
		{columnRefresh, &p.Refresh, &p.Grant.Refresh},
		{columnIDToken, &p.IDToken, &p.Grant.IDToken},
		{columnClientSecret, &p.ClientSecret, &p.Grant.ClientSecret},
	}
}

func (s *Service) sealParked(f Flow, g Grant, missing []string) ([]byte, error) {
	p := parked{Grant: g, Missing: missing}
	for _, c := range p.columns() {
		plain, err := s.unseal(*c.cipher, g.ad(c.name))
		if err != nil {
			return nil, err
		}
		*c.plain, *c.cipher = plain.Reveal(), nil
	}
	raw, err := json.Marshal(p) //nolint:gosec // sealed in the next line
	if err != nil {
		return nil, fmt.Errorf("encode grant: %w", err)
	}
	return s.seal(auth.NewSecret(string(raw)), f.ad(columnParked))
}

func (s *Service) openParked(f Flow) (p parked, err error) {
	plain, err := s.unseal(f.Code, f.ad(columnParked))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal([]byte(plain.Reveal()), &p); err != nil {
		return p, fmt.Errorf("decode grant: %w", vault.ErrCipher)
	}
	for _, c := range p.columns() {
		if *c.cipher, err = s.seal(auth.NewSecret(*c.plain), p.Grant.ad(c.name)); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (s *Service) park(ctx context.Context, access auth.Access, f Flow, g Grant, missing []string) (Result, error) {
	sealed, err := s.sealParked(f, g, missing)
	if err != nil {
		return Result{}, err
	}
	if f.Status != FlowParked {
		if err := s.cfg.Store.Park(ctx, f.StateHash, sealed); err != nil && !errors.Is(err, ErrConflict) {
			return Result{}, fmt.Errorf("park login: %w", err)
		}
		s.cfg.Fault(ctx, FaultParked)
	}
	out, err := s.outcome(ctx, access, f)
	if err != nil || !out.Outcome.Open() {
		return out, err
	}
	now, err := s.cfg.Store.Flow(ctx, f.StateHash)
	if err != nil {
		return out, fmt.Errorf("read login: %w", err)
	}
	return s.change(ctx, out, now)
}

// change adds to a result what is to be confirmed.
func (s *Service) change(ctx context.Context, out Result, f Flow) (Result, error) {
	switch {
	case f.Status != FlowParked:
		return out, ErrSpentFlow
	case !s.cfg.Now().Before(f.Expires):
		return out, ErrExpiredFlow
	}
	p, err := s.openParked(f)
	if err != nil {
		return out, err
	}
	out.Change = &Change{Flow: f.StateHash, To: p.Grant.Account}
	n := out.Request.Need.Slot
	found, err := s.cfg.Store.Grants(ctx, GrantQuery{Owner: n.Owner, Domain: n.Domain, Issuer: n.Issuer, Resource: n.Resource, Client: n.Client})
	if err != nil {
		return out, fmt.Errorf("find grant: %w", err)
	}
	for _, g := range found {
		if g.Slot == n {
			out.Change.From, out.Change.Replaces = g.Account, g.ID
		}
	}
	return out, nil
}

// Confirm takes what the person said to a change of the account. It wants the same proof as the callback did: the browser that
// began the login, and the person who is asked. Errors: those of [Service.Complete]; with [Result.Change], the page is shown
// once more.
func (s *Service) Confirm(ctx context.Context, access auth.Access, c Choice) (Result, error) {
	if c.Flow == "" || len(c.Flow) > maxState {
		return Result{}, ErrUnknownState
	}
	f, err := s.cfg.Store.Flow(ctx, c.Flow)
	switch {
	case errors.Is(err, ErrNotFound):
		return Result{}, ErrUnknownState
	case err != nil:
		return Result{}, fmt.Errorf("confirm account: %w", err)
	}
	if reason, err := s.prove(f, access, Callback{Digest: CallbackDigest(CallbackIssuer(f.Provider)), Cookies: c.Cookies}); err != nil {
		s.refuse(ctx, f, reason, "")
		return Result{}, err
	}
	out, err := s.outcome(ctx, access, f)
	if err != nil {
		return Result{}, fmt.Errorf("confirm account: %w", err)
	}
	if !out.Outcome.Open() {
		return out, nil
	}
	if err := sound(out.Request); err != nil {
		s.refuse(ctx, f, "damaged", "")
		return out, err
	}
	if out, err = s.change(ctx, out, f); err != nil {
		return out, err
	}
	p, err := s.openParked(f)
	if err != nil {
		return out, err
	}
	// What is begun here ends here: a browser that goes away must not leave tokens between two places.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.ExchangeTimeout+leaseMargin/2)
	defer cancel()
	if c.Replace {
		p.Grant.Replaces = c.Replaces
		return s.save(ctx, access, f, p.Grant, p.Missing)
	}
	out.Change = nil
	switch err := s.cfg.Store.Unpark(ctx, f.StateHash, "another account"); {
	case errors.Is(err, ErrConflict):
		return s.outcome(ctx, access, f)
	case err != nil:
		return out, fmt.Errorf("confirm account: %w", err)
	}
	s.forgo(ctx, f)
	return out, nil
}

// forgo gives tokens back that nobody wants. f is as it was before it was unparked; a failure has been logged.
func (s *Service) forgo(ctx context.Context, f Flow) {
	p, err := s.openParked(f)
	if err != nil {
		s.cfg.Log.ErrorContext(ctx, "open parked login", "request_id", f.Request, "err", err)
		return
	}
	_ = s.revoke(ctx, p.Grant) // they end by themselves too
}

// dropParked ends the parked flows that nobody has confirmed in time.
func (s *Service) dropParked(ctx context.Context) error {
	flows, err := s.cfg.Store.Parked(ctx, recoverBatch)
	if err != nil {
		return fmt.Errorf("list parked logins: %w", err)
	}
	var failed []error
	for _, f := range flows {
		switch err := s.cfg.Store.Unpark(auth.WithActor(ctx, ""), f.StateHash, "another account, not confirmed in time"); {
		case errors.Is(err, ErrConflict): // another process was first
		case err != nil:
			failed = append(failed, fmt.Errorf("drop parked login: %w", err))
		default:
			s.forgo(ctx, f)
		}
	}
	return errors.Join(failed...)
}
