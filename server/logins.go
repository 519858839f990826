package server

import (
	"context"
	"errors"
	"log/slog"

	"tarry/auth"
	"tarry/auth/inputs"
	"tarry/auth/keys"
	"tarry/auth/oauth"
	"tarry/internal/wiring"
	"tarry/server/connect"
)

// logins puts the login service behind the connect pages.
type logins struct {
	service  *oauth.Service
	keys     *keys.Service
	inputs   *inputs.Service
	requests requests
	// wake sends what a login has written to the outbox.
	wake func()
	// parts keep answers for services.
	parts *wiring.Parts
	log   *slog.Logger
}

var _ connect.Logins = logins{}

// requests finds requests.
type requests interface {
	Request(ctx context.Context, id string, access auth.Access) (auth.Request, error)
}

// Page implements connect.Logins.
func (l logins) Page(ctx context.Context, access auth.Access, id string) (connect.Page, error) {
	r, err := l.requests.Request(ctx, id, access)
	if err != nil {
		return connect.Page{}, page(err)
	}
	if r.Need.Typed != nil {
		return l.keyPage(ctx, access, id)
	}
	var special func(auth.Request) (connect.Page, error)
	switch r.Need.Type {
	case auth.TypeInput:
		special = l.inputPage
	case auth.TypeConfirmation:
		special = l.confirmPage
	case auth.TypeQuestion, auth.TypeResult:
		special = l.questionPage
	}
	if special != nil {
		out, err := special(r)
		if err != nil {
			return connect.Page{}, page(err)
		}
		return out, nil
	}
	p, err := l.service.Page(ctx, access, id)
	if err != nil {
		return connect.Page{}, page(err)
	}
	out := connect.Page{
		RequestID: p.Request.ID, App: p.App, User: p.Request.Owner.User, Agent: p.Agent, Tool: p.Tool, Toolset: p.Toolset,
		ProviderHost: p.ProviderHost, ServerHost: p.ServerHost, Scopes: p.Scopes, Status: p.Status,
		Correlator: p.Request.Correlator, Created: p.Request.Created, Deadline: p.Request.Deadline, Runs: p.Runs, Shown: p.Shown,
	}
	if out.ByDevice = p.ByDevice; p.Device != nil {
		out.Device = &connect.Device{UserCode: p.Device.UserCode, URI: p.Device.URI, Complete: p.Device.Complete, Expires: p.Device.Expires}
	}
	for _, a := range p.Askers {
		out.Askers = append(out.Askers, connect.Asker(a))
	}
	return out, nil
}

// Begin implements connect.Logins.
func (l logins) Begin(ctx context.Context, access auth.Access, id, shown string) (connect.Started, error) {
	started, err := l.service.Begin(ctx, access, id, shown)
	if err != nil {
		return connect.Started{}, page(err)
	}
	return connect.Started{
		Device: started.Device, RedirectURL: started.RedirectURL, CookieName: started.CookieName, Cookie: started.Cookie, Expires: started.Expires,
		Correlator: started.Correlator,
	}, nil
}

// Complete implements connect.Logins.
func (l logins) Complete(ctx context.Context, access auth.Access, c connect.Callback) (connect.Result, error) {
	out, err := l.service.Complete(ctx, access, oauth.Callback{
		Digest: c.Digest, State: c.State.Reveal(), Code: c.Code.Reveal(), Error: c.Error, Iss: c.Iss, IssPresent: c.IssPresent,
		Cookies: func(name string) string { return c.Cookie(name).Reveal() },
	})
	return l.result(out, err)
}

// Account implements connect.Logins.
func (l logins) Account(ctx context.Context, access auth.Access, c connect.Choice) (connect.Result, error) {
	out, err := l.service.Confirm(ctx, access, oauth.Choice{
		Flow: c.Flow, Replaces: c.Replaces, Replace: c.Replace, Cookies: func(name string) string { return c.Cookie(name).Reveal() },
	})
	return l.result(out, err)
}

func (l logins) result(out oauth.Result, err error) (connect.Result, error) {
	l.wake()
	result := connect.Result{
		Outcome: out.Outcome, RequestID: out.Request.ID, App: out.Request.Owner.App, Agent: out.Request.Agent,
		Correlator: out.Request.Correlator,
	}
	if c := out.Change; c != nil {
		result.Change = &connect.Change{
			Flow: c.Flow, Replaces: c.Replaces, From: accountName(c.From), To: accountName(c.To), ProviderHost: bareHost(out.Request.Need.Slot.Issuer),
		}
	}
	if err != nil {
		return result, page(err)
	}
	return result, nil
}

// page turns an error of the login service into one of the pages'; what is not in the table is an internal error.
func page(err error) error {
	for _, row := range []struct{ from, to error }{
		{oauth.ErrUnknownState, connect.ErrUnknown},
		{oauth.ErrNotFound, connect.ErrUnknown},
		{oauth.ErrBadCallback, connect.ErrUnknown},
		{oauth.ErrWrongBrowser, connect.ErrWrongBrowser},
		{oauth.ErrRefusedCode, connect.ErrWrongBrowser},
		{oauth.ErrWrongUser, connect.ErrWrongUser},
		{oauth.ErrExpiredFlow, connect.ErrExpired},
		{oauth.ErrSpentFlow, connect.ErrTryAgain},
		{oauth.ErrBusy, connect.ErrTryAgain},
		{oauth.ErrMoved, connect.ErrMoved},
		{oauth.ErrClosed, connect.ErrFinished},
		{inputs.ErrClosed, connect.ErrFinished},
		{keys.ErrNotKey, connect.ErrUnknown},
		{inputs.ErrNotInput, connect.ErrUnknown},
		{inputs.ErrNotConfirmation, connect.ErrUnknown},
		{inputs.ErrNotQuestion, connect.ErrUnknown},
		{inputs.ErrNotResult, connect.ErrUnknown},
		{oauth.ErrTooMany, connect.ErrTooMany},
		{oauth.ErrIssuer, connect.ErrProvider},
		{oauth.ErrIdentity, connect.ErrProvider},
		{auth.ErrUnavailable, connect.ErrTryAgain},
		{oauth.ErrResourceRefused, &connect.MisconfiguredError{Text: "The provider rejects the resource parameter. The definition can leave it out: omit_resource."}},
		{oauth.ErrScopeRefused, &connect.MisconfiguredError{Text: "The provider rejects a scope that was asked for. The definition can limit scopes: max_scopes."}},
		{auth.ErrMisconfigured, connect.ErrMisconfigured},
	} {
		if errors.Is(err, row.from) {
			return errors.Join(row.to, err)
		}
	}
	var answered *oauth.ProviderError
	if errors.As(err, &answered) {
		return errors.Join(connect.ErrProvider, err)
	}
	return err
}
