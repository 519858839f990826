package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"tarry/auth"
	"tarry/auth/discovery"
	"tarry/auth/keys"
	"tarry/internal/form"
	"tarry/server/connect"
)

// inputPage describes a request that is no login.
func (l logins) inputPage(r auth.Request) (connect.Page, error) {
	p := callPage(r)
	p.ServerHost, p.Input = hostOf(r.Need), true
	if !r.Status.Open() {
		return p, nil
	}
	q, err := l.inputs.Question(r)
	if err != nil {
		return p, fmt.Errorf("open question: %w", err)
	}
	for i, in := range q.Inputs {
		shown, err := inputOf(i, in)
		if err != nil {
			return p, err
		}
		p.Inputs = append(p.Inputs, shown)
	}
	return p, nil
}

// callPage is what pages about one call have in common.
func callPage(r auth.Request) connect.Page {
	return connect.Page{
		RequestID: r.ID, App: r.Owner.App, User: r.Owner.User, Agent: r.Agent, Tool: r.Need.Tool, Toolset: r.Need.Toolset,
		Status: r.Status, Correlator: r.Correlator, Created: r.Created, Deadline: r.Deadline,
	}
}

func hostOf(n auth.Need) string {
	if n.Server == "" {
		return n.Toolset
	}
	return discovery.Host(n.Server)
}

func inputOf(i int, in auth.Input) (connect.Input, error) {
	out := connect.Input{Message: in.Message}
	if in.Mode == auth.InputURL {
		out.URL, out.Host = in.URL, discovery.Host(in.URL)
		if u, err := url.Parse(in.URL); err == nil {
			out.Unusual = strings.Contains(strings.ToLower(u.Hostname()), "xn--") || strings.ContainsFunc(u.Hostname(), func(r rune) bool { return r > '~' })
		}
		return out, nil
	}
	fields, err := form.Fields(in.Schema)
	if err != nil {
		return out, fmt.Errorf("form: %w", err)
	}
	for j, f := range fields {
		f.Name = connect.ControlName(i, j)
		out.Fields = append(out.Fields, f)
	}
	return out, nil
}

// Answer implements connect.Logins.
func (l logins) Answer(ctx context.Context, access auth.Access, id string, a connect.Answer) (connect.Result, error) {
	r, err := l.requests.Request(ctx, id, access)
	if err != nil {
		return connect.Result{}, page(err)
	}
	result := connect.Result{
		Outcome: r.Status, RequestID: r.ID, App: r.Owner.App, Agent: r.Agent, Correlator: r.Correlator,
		Input: !r.Need.Login() && r.Need.Type != auth.TypeConfirmation, Confirmation: r.Need.Type == auth.TypeConfirmation,
	}
	if r.Need.Typed != nil {
		result.Key, result.ProviderHost = true, keys.Host(r.Need)
		return l.entered(ctx, access, result, a)
	}
	if !r.Status.Open() {
		return result, connect.ErrFinished
	}
	if r.Need.Login() { // nothing of a login is answered here
		return result, connect.ErrUnknown
	}
	if result.Confirmation {
		r, err = l.confirm(ctx, access, r, a)
	} else if r.Need.Type != auth.TypeInput {
		r, err = l.reply(ctx, access, r, a)
	} else {
		var answers map[string]auth.InputAnswer
		if answers, err = l.answers(r, a); err != nil {
			return result, page(err)
		}
		r, err = l.inputs.Answer(ctx, access, id, answers)
	}
	l.wake()
	if r.Status != "" {
		result.Outcome = r.Status
	}
	if err != nil {
		return result, page(err)
	}
	return result, nil
}

// answers reads what was filled in.
func (l logins) answers(r auth.Request, a connect.Answer) (map[string]auth.InputAnswer, error) {
	q, err := l.inputs.Question(r)
	if err != nil {
		return nil, fmt.Errorf("open question: %w", err)
	}
	out := map[string]auth.InputAnswer{}
	for i, in := range q.Inputs {
		answer := auth.InputAnswer{Action: auth.InputAccept}
		switch {
		case a.Decline:
			answer.Action = auth.InputDecline
		case in.Mode == auth.InputForm:
			answer.Content, err = read(i, in, a)
		}
		if err != nil {
			return nil, fmt.Errorf("read form: %w", err)
		}
		out[in.Key] = answer
	}
	return out, nil
}

// read reads the form of the ith input.
func read(i int, in auth.Input, a connect.Answer) (map[string]any, error) {
	fields, err := form.Fields(in.Schema)
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller wraps it
	}
	return filledIn(in.Schema, fields, i, a)
}

// filledIn reads the form of a schema, whose fields are on the page as those of the ith input.
func filledIn(schema json.RawMessage, fields []form.Field, i int, a connect.Answer) (map[string]any, error) {
	controls := map[string]string{}
	for j, f := range fields {
		controls[f.Name] = connect.ControlName(i, j)
	}
	out, err := form.Read(schema, func(name string) []string { return a.Values(controls[name]) })
	var wrong *form.FieldError
	if errors.As(err, &wrong) {
		return nil, &connect.FormError{Text: wrong.Error() + ".", Control: controls[wrong.Name]}
	}
	return out, err //nolint:wrapcheck // the caller wraps it
}
