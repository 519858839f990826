package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/tools"
)

// idempotencyKey is the metadata field in which a server finds the call's id. It is the same in every attempt.
const idempotencyKey = "tarry/idempotencyKey"

// Bounds of what one call does by itself before it gives up.
const (
	// maxRounds of forms that defaults answer.
	maxRounds = 8
	// maxBusy repeats for a server that wants the same call again later.
	maxBusy = 3
	// busyPause is the first pause before such a repeat.
	busyPause = 250 * time.Millisecond
)

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
	what := fmt.Sprintf("tool %s", cut(call.Name, 128))
	first, err := resumed(what, call.Resume)
	if err != nil {
		return tools.Result{}, err
	}
	var out tools.Result
	err = t.do(ctx, call.Name, what, func(a *attempt, c *conn, s *session) error {
		ctx, _, release := a.requests(ctx)
		defer release()
		if call.Resume != nil {
			a.visited = call.Resume.Visited
		}
		token, end := c.run(a)
		defer end()
		defer a.within(c.silence(), a.abandon)()
		defer s.killAfter(ctx)()
		r := request{toolset: t, attempt: a, session: s, what: what, id: call.ID, token: token, name: name, args: args}
		res, err := r.rounds(ctx, first)
		if err != nil {
			return err
		}
		out, err = result(what, res)
		out.Response, _ = c.secrets.ScrubValue(out.Response).(map[string]any)
		return err
	})
	return out, err
}

// request is a call on its way through one session.
type request struct {
	toolset *toolset
	attempt *attempt
	session *session
	what    string
	id      string
	token   string // of progress
	name    string // the server's
	args    json.RawMessage
}

// rounds calls until the server has what it wants without a person: the multi round-trip requests of revision 2026-07-28.
func (r *request) rounds(ctx context.Context, answered round) (*sdk.CallToolResult, error) {
	busy := 0
	for range maxRounds {
		res, err := r.send(ctx, answered)
		if err != nil || !res.NeedsInput() {
			return res, err
		}
		next, err := r.toolset.asked(r.what, res)
		if err != nil {
			return nil, err
		}
		if len(res.InputRequests) == 0 {
			if busy == maxBusy {
				return nil, errBusy
			}
			select {
			case <-ctx.Done():
				return nil, fmt.Errorf("wait: %w", context.Cause(ctx))
			case <-time.After(busyPause << busy):
			}
			busy++
		}
		answered = next
	}
	return nil, tools.Errorf("%s: the server went on asking for input, although it was answered %d times", r.what, maxRounds)
}

func (r *request) send(ctx context.Context, answered round) (*sdk.CallToolResult, error) {
	a, s := r.attempt, r.session
	once := func() (*sdk.CallToolResult, error) {
		a.begin()
		if s.http == nil {
			// A process has no transport of ours to tell; a closed connection is told apart by its error.
			a.note(func(o *outcome) { o.sent = true })
		}
		return s.CallTool(ctx, &sdk.CallToolParams{
			Meta: sdk.Meta{idempotencyKey: r.id, "progressToken": r.token}, Name: r.name, Arguments: r.args,
			InputResponses: answered.responses(), RequestState: answered.state,
		})
	}
	res, err := once()
	if o, _, _ := a.result(); err != nil && o.wire != nil && o.wire.Code == sdk.CodeHeaderMismatch {
		// The server wants arguments in headers, and this session has not seen the listing that says which.
		a.begin()
		if _, lerr := list(ctx, s, r.toolset.def, r.toolset.opener.cfg.Log); lerr != nil {
			return nil, lerr
		}
		res, err = once()
	}
	if err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	return res, nil
}
