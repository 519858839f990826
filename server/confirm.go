package server

import (
	"context"
	"encoding/json"
	"fmt"

	"tarry/auth"
	"tarry/server/connect"
)

// confirmPage describes a request for approval.
func (l logins) confirmPage(r auth.Request) (connect.Page, error) {
	p := callPage(r)
	p.Confirmation = &connect.Confirmation{}
	if r.Need.Server != "" {
		p.ServerHost = hostOf(r.Need)
	}
	if !r.Status.Open() {
		return p, nil
	}
	c, err := l.inputs.Confirmation(r)
	if err != nil {
		return p, fmt.Errorf("open confirmation: %w", err)
	}
	*p.Confirmation = connect.Confirmation{Hint: c.Hint, Args: c.Args, Payload: c.Payload}
	return p, nil
}

// confirm takes what a person said on the page.
func (l logins) confirm(ctx context.Context, access auth.Access, r auth.Request, a connect.Answer) (auth.Request, error) {
	var said auth.Consent
	if values := a.Values(connect.PayloadControl); len(values) == 1 && values[0] != "" && !a.Decline {
		if !json.Valid([]byte(values[0])) {
			return r, &connect.FormError{Text: "What you filled in is not JSON.", Control: connect.PayloadControl}
		}
		said.Payload = values[0]
	}
	return l.inputs.Confirm(ctx, access, r.ID, !a.Decline, said) //nolint:wrapcheck // the caller turns it into one of the pages'
}
