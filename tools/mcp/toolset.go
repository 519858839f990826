package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

// idempotencyKey is the metadata field in which a server finds the call's id. It is the same in every attempt.
const idempotencyKey = "tarry/idempotencyKey"

// toolset serves one attempt of one activity.
type toolset struct {
	opener *Opener
	def    *agent.MCPToolset
	key    key
	broker auth.Broker
}

// List implements [tools.Toolset].
func (t *toolset) List(ctx context.Context) ([]tools.Declaration, error) {
	var out []tools.Declaration
	what := fmt.Sprintf("list tools of %s", t.def.Name)
	err := t.do(ctx, "", what, func(a *attempt, c *conn, s *session) error {
		ctx, cancel, release := a.requests(ctx)
		defer release()
		stop := a.within(c.timeout(), func() { cancel(a.refuse(errSilent)) })
		defer stop()
		var err error
		out, err = list(ctx, s, t.def, t.opener.cfg.Log)
		for i, d := range out {
			out[i].Description = c.secrets.Scrub(d.Description)
			out[i].Parameters = json.RawMessage(c.secrets.Scrub(string(d.Parameters)))
			out[i].Response = json.RawMessage(c.secrets.Scrub(string(d.Response)))
		}
		return err
	})
	return out, err
}

// Call implements [tools.Toolset].
func (t *toolset) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	name, ok := t.original(call.Name)
	if !ok {
		return tools.Result{}, tools.Errorf("toolset %s has no tool %q", t.def.Name, cut(call.Name, 128))
	}
	args := call.Args
	if trimmed := bytes.TrimSpace(args); len(trimmed) == 0 || string(trimmed) == "null" {
		args = json.RawMessage("{}")
	}
	var out tools.Result
	what := fmt.Sprintf("tool %s", cut(call.Name, 128))
	err := t.do(ctx, call.Name, what, func(a *attempt, c *conn, s *session) error {
		ctx, _, release := a.requests(ctx)
		defer release()
		a.begin()
		if s.http == nil {
			// A process has no transport of ours to tell; a closed connection is told apart by its error.
			a.note(func(o *outcome) { o.sent = true })
		}
		params := func() *sdk.CallToolParams {
			return &sdk.CallToolParams{Meta: sdk.Meta{idempotencyKey: call.ID}, Name: name, Arguments: args}
		}
		res, err := s.CallTool(ctx, params())
		if o, _, _ := a.result(); err != nil && o.wire != nil && o.wire.Code == sdk.CodeHeaderMismatch {
			// The server wants arguments in headers, and this session has not seen the listing that says which.
			a.begin()
			if _, lerr := list(ctx, s, t.def, t.opener.cfg.Log); lerr != nil {
				return lerr
			}
			a.begin()
			res, err = s.CallTool(ctx, params())
		}
		if err != nil {
			return fmt.Errorf("call: %w", err)
		}
		out, err = result(what, res)
		out.Response, _ = c.secrets.ScrubValue(out.Response).(map[string]any)
		return err
	})
	return out, err
}

// do runs f in a session, and once more in a new one when the old one turned out to be gone before anything ran.
func (t *toolset) do(ctx context.Context, tool, what string, f func(*attempt, *conn, *session) error) error {
	for try := 0; ; try++ {
		stale, err := t.once(ctx, tool, what, f)
		if err == nil || !stale || try > 0 {
			return err
		}
		t.opener.cfg.Log.DebugContext(ctx, "mcp session is gone, connecting again", "toolset", t.def.Name)
	}
}

func (t *toolset) once(ctx context.Context, tool, what string, f func(*attempt, *conn, *session) error) (stale bool, _ error) {
	c, err := t.opener.enter(t.key, t.def)
	if err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	leave := func() { t.opener.leave(c) }
	defer func() { leave() }()
	want := auth.Want{Server: t.def.URL, Tool: tool, Toolset: t.def.Name}
	if t.def.Auth != nil {
		want.Auth = *t.def.Auth
	}
	a := newAttempt(ctx, t.opener.life, t.broker, want)
	defer a.finish()
	s, err := c.acquire(a) //nolint:contextcheck // a connection outlives the context of the call that opens it
	if err == nil {
		err = f(a, c, s)
	}
	if err == nil {
		return false, nil
	}
	_, _, refused := a.result()
	var told *tools.Error
	if refused == nil && errors.As(err, &told) {
		return false, c.clean(told) // what a result means
	}
	if o, calling, _ := a.result(); calling && o.sent && s.http != nil && a.canceled() {
		// The session must not be closed before the server was told.
		leave = func() {
			go func() {
				defer t.opener.leave(c)
				select {
				case <-a.noticed:
				case <-time.After(partingTimeout):
				}
			}()
		}
	}
	stale, err = failure(a, s, what, err)
	if s != nil && (stale || errors.Is(refused, errStaticRefused)) {
		c.drop(s, stale)
	}
	return stale, c.clean(err)
}

// original is the server's name of a tool that the model knows as name.
func (t *toolset) original(name string) (string, bool) {
	if t.def.NamePrefix != "" {
		var ok bool
		if name, ok = strings.CutPrefix(name, t.def.NamePrefix+"_"); !ok {
			return "", false
		}
	}
	return name, name != "" && selected(t.def, name) && !agent.Reserved(t.def.NamePrefix+name)
}
