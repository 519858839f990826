package server

import (
	"context"
	"errors"

	"tarry/auth"
	"tarry/server/connect"
)

// keyPage describes a request for a credential that is typed in.
func (l logins) keyPage(ctx context.Context, access auth.Access, id string) (connect.Page, error) {
	k, err := l.keys.Page(ctx, access, id)
	if err != nil {
		return connect.Page{}, page(err)
	}
	p := callPage(k.Request)
	p.ServerHost, p.Key, p.Runs, p.Shown = k.Host, &connect.Key{Key: k.Key, Again: k.Again}, k.Runs, k.Shown
	for _, a := range k.Askers {
		p.Askers = append(p.Askers, connect.Asker(a))
	}
	return p, nil
}

// entered ends a request for a key, or the one that waits behind its link by now.
func (l logins) entered(ctx context.Context, access auth.Access, out connect.Result, a connect.Answer) (connect.Result, error) {
	r, err := l.enter(ctx, access, out.RequestID, a)
	l.wake()
	if r.ID != "" {
		out.Outcome, out.RequestID, out.Agent, out.Correlator = r.Status, r.ID, r.Agent, r.Correlator
	}
	if err != nil {
		return out, page(err)
	}
	return out, nil
}

// enter takes what was typed in, straight to the vault.
func (l logins) enter(ctx context.Context, access auth.Access, id string, a connect.Answer) (auth.Request, error) {
	if a.Decline {
		return l.keys.Refuse(ctx, access, id, a.Shown) //nolint:wrapcheck // the caller turns it into one of the pages'
	}
	r, err := l.keys.Enter(ctx, access, id, auth.KeyValue{Username: typed(a, connect.UsernameControl), Secret: typed(a, connect.KeyControl)})
	var wrong *auth.AnswerError
	if errors.As(err, &wrong) {
		return r, &connect.FormError{Text: "That does not do: " + wrong.Text + "."}
	}
	return r, err //nolint:wrapcheck // as above
}

func typed(a connect.Answer, control string) auth.Secret {
	if values := a.Values(control); len(values) == 1 {
		return auth.NewSecret(values[0])
	}
	return auth.Secret{}
}
