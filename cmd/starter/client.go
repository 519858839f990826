package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"tarry/auth"
	"tarry/server/runs"
)

const (
	requestTimeout = 30 * time.Second
	maxBody        = 64 << 20 // bytes; a history is the largest
	listLimit      = 1000
)

// client speaks the server's HTTP API.
type client struct {
	base string
	user string
	// token is sent with every request; empty is for a server without sign-in.
	token auth.Secret
	http  *http.Client
}

// client checks the server's URL.
func (a *app) client() (*client, error) {
	u, err := url.Parse(a.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, unusable("--server %q is not a URL such as %s", a.server, defaultServer)
	}
	if a.user == "" {
		return nil, unusable("--user is empty: name whose runs these are")
	}
	c := newClient(a.server, a.user, &http.Transport{ResponseHeaderTimeout: requestTimeout})
	if file := a.getenv("TARRY_TOKEN_FILE"); file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, unusable("TARRY_TOKEN_FILE: %w", err)
		}
		if c.token = auth.NewSecret(strings.TrimSpace(string(token))); c.token.IsZero() {
			return nil, unusable("TARRY_TOKEN_FILE: %s is empty", file)
		}
	}
	return c, nil
}

func newClient(base, user string, transport http.RoundTripper) *client {
	return &client{base: strings.TrimSuffix(base, "/"), user: user, http: &http.Client{Transport: transport}}
}

// unreachable says that no server answered.
type unreachable struct {
	base string
	err  error
}

func (e *unreachable) Error() string {
	return fmt.Sprintf("no server answers at %s: start one with `starter dev`, or name another with --server", e.base)
}

func (e *unreachable) Unwrap() error { return e.err }

// refused is an answer that is no success.
type refused struct {
	status int
	text   string
	id     string
}

func (e *refused) Error() string {
	text := e.text
	if text == "" {
		text = http.StatusText(e.status)
	}
	if e.id != "" && e.status >= http.StatusInternalServerError {
		text += " (request " + e.id + " in the server's log)"
	}
	return "the server says: " + text
}

func isStatus(err error, status int) bool {
	var r *refused
	return errors.As(err, &r) && r.status == status
}

// do sends a request and returns the answer if it is a success; the caller closes its body.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body any) (*http.Response, error) {
	target := c.base + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var reader io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, failed("encode request: %w", err)
		}
		reader = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, reader)
	if err != nil {
		return nil, unusable("make request: %w", err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	if !c.token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err() //nolint:wrapcheck // the caller branches on it
		}
		return nil, &statusError{exitUnusable, &unreachable{c.base, err}}
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	return nil, refusal(resp)
}

// refusal reads an answer that is no success. What was asked for wrongly is wrong use.
func refusal(resp *http.Response) error {
	r := &refused{status: resp.StatusCode}
	var said struct {
		Error     string `json:"error"`
		Detail    string `json:"detail"`
		RequestID string `json:"request_id"`
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err == nil && json.Unmarshal(body, &said) == nil {
		r.text, r.id = said.Error, said.RequestID
		if r.text == "" {
			r.text = said.Detail
		}
	}
	status := exitFailed
	if r.status < http.StatusInternalServerError {
		status = exitUnusable
	}
	return &statusError{status, r}
}

// call sends a request and decodes the answer into out; nil drops it.
func (c *client) call(ctx context.Context, method, path string, query url.Values, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, maxBody))
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, maxBody)).Decode(out)
	}
	if err != nil {
		return failed("read answer of %s: %w", c.base, err)
	}
	return nil
}

func (c *client) session(app, session, rest string) string {
	return "/apps/" + url.PathEscape(app) + "/users/" + url.PathEscape(c.user) + "/sessions/" + url.PathEscape(session) + rest
}

func (c *client) apps(ctx context.Context) (out []string, err error) {
	err = c.call(ctx, http.MethodGet, "/list-apps", nil, nil, &out)
	return out, err
}

func (c *client) start(ctx context.Context, app string, r runs.Start) (out runs.Started, err error) {
	path := "/apps/" + url.PathEscape(app) + "/users/" + url.PathEscape(c.user) + "/runs"
	err = c.call(ctx, http.MethodPost, path, nil, r, &out)
	return out, err
}

// runs lists the user's runs, of one app if it is named; all means also those that have ended.
func (c *client) runs(ctx context.Context, app string, all bool) ([]runs.Run, error) {
	query := url.Values{"user": {c.user}, "limit": {strconv.Itoa(listLimit)}}
	if app != "" {
		query.Set("app", app)
	}
	if all {
		query.Set("all", "true")
	}
	var out struct {
		Runs []runs.Run `json:"runs"`
	}
	err := c.call(ctx, http.MethodGet, "/runs", query, nil, &out)
	return out.Runs, err
}

func (c *client) logins(ctx context.Context, all bool) ([]runs.Login, error) {
	query := url.Values{"user": {c.user}}
	if all {
		query.Set("all", "true")
	}
	var out struct {
		Logins []runs.Login `json:"logins"`
	}
	err := c.call(ctx, http.MethodGet, "/logins", query, nil, &out)
	return out.Logins, err
}

func (c *client) status(ctx context.Context, app, session string) (*statusInfo, error) {
	out := &statusInfo{}
	if err := c.call(ctx, http.MethodGet, c.session(app, session, "/status"), nil, nil, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (c *client) cancel(ctx context.Context, app, session string) error {
	return c.call(ctx, http.MethodPost, c.session(app, session, "/cancel"), nil, nil, nil)
}

func (c *client) cancelCall(ctx context.Context, app, session, call string) error {
	return c.call(ctx, http.MethodPost, c.session(app, session, "/calls/"+url.PathEscape(call)+"/cancel"), nil, nil, nil)
}

func (c *client) confirm(ctx context.Context, app, session, request string, confirmed bool) (out runs.Decided, err error) {
	err = c.call(ctx, http.MethodPost, c.session(app, session, "/confirmations/"+url.PathEscape(request)), nil, runs.Decision{Confirmed: &confirmed}, &out)
	return out, err
}

// history is that of a run; without, of the latest.
// answer answers a tool's question, or says what came of a call.
func (c *client) answer(ctx context.Context, st *statusInfo, w *runs.Waiting, value string, decline, interim bool) (out runs.Decided, err error) {
	var response json.RawMessage
	if !decline {
		if response, err = jsonOf(value, w.Kind == kindResult); err != nil {
			return out, err
		}
	}
	path, body := "/inputs/"+url.PathEscape(w.Request), any(runs.Answer{Response: response, Decline: decline})
	if w.Kind == kindResult {
		path, body = "/calls/"+url.PathEscape(w.Request)+"/result", runs.Result{Response: response, Decline: decline, Interim: interim}
	}
	err = c.call(ctx, http.MethodPost, c.session(st.App, st.Session, path), nil, body, &out)
	return out, err
}

func (c *client) history(ctx context.Context, app, session, run string) (out json.RawMessage, err error) {
	query := url.Values{}
	if run != "" {
		query.Set("run", run)
	}
	err = c.call(ctx, http.MethodGet, c.session(app, session, "/history"), query, nil, &out)
	return out, err
}
