package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

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
	var asked *tools.InputRequiredError
	if refused == nil && (errors.As(err, &told) || errors.As(err, &asked)) {
		return false, c.clean(err) // what a result means
	}
	o, calling, _ := a.result()
	var notice *attempt
	if calling && o.sent && s.http != nil && a.canceled() {
		// The session must not be closed before the server was told.
		notice = a
		leave = func() {
			go func() {
				defer t.opener.leave(c)
				a.wait()
			}()
		}
	}
	stale, err = t.failure(a, s, what, err)
	// A stream for all calls may be dead without a word, and a process may hang.
	dead := s.single() && (errors.Is(o.fault, errSilent) || errors.Is(refused, errSilent))
	if s != nil && (stale || dead || errors.Is(refused, errStaticRefused)) {
		c.drop(s, stale, notice)
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
