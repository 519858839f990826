package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/web"
	"tarry/session"
)

// heard is what is kept of a message's replies: whose run to follow, and from where.
type heard struct {
	invocation string
	after      int64
}

// hear checks replies to requests, all of them before one counts. A reply to a login request that passes is an
// acknowledgement: it is dropped, and the run goes on when the login itself is there. One that carries a credential or
// changes what was asked is refused, because nothing here holds the state, cookie and verifier that would make somebody
// else's redirect safe. A reply to a request for a key may hold that, which goes into the vault; one to a request for approval
// is the answer itself.
func (h *Handler) hear(ctx context.Context, row session.Session, replies []reply, latest string) (heard, error) {
	var out heard
	view, err := h.Log.Timeline(ctx, row.Owner, row.ID, 0)
	if err != nil {
		return out, noSession(err, row.ID)
	}
	var said decisions
	var told answers
	var typed entries
	for _, r := range replies {
		call, seq, err := find(view, r)
		if err != nil {
			return out, err
		}
		request, err := h.Requests.Request(ctx, r.id, func(o agent.Owner) bool { return o == row.Owner })
		if errors.Is(err, auth.ErrNoRequest) && !agent.Reserved(call.Name) {
			return out, web.Refusal(http.StatusConflict, "functionResponse %s: the call of %s does not wait for a result; it runs, or has one", r.id, call.Name)
		}
		if err != nil {
			return out, fmt.Errorf("request of reply: %w", err)
		}
		if request.WorkflowID != row.WorkflowID {
			return out, unknown(view, r.id)
		}
		if call.Name == agent.RequestConfirmation {
			if err := said.add(r); err != nil {
				return out, err
			}
		} else if call.Name != agent.RequestCredential {
			if err := told.add(h, request, r); err != nil {
				return out, err
			}
		} else if request.Need.Typed != nil {
			if err := typed.add(h, request, r, call.Args); err != nil {
				return out, err
			}
		} else if problem := h.check(r.response, call.Args, request); problem != "" {
			return out, invalid("%s: %s; log in at its authUri %s instead; the request stays as it is", r.id, problem, request.Link(h.PublicURL))
		}
		if seq >= out.after {
			out = heard{request.Invocation, seq}
		}
	}
	if err := h.confirm(ctx, row.Owner, said); err != nil {
		return out, err
	}
	if err := h.answer(ctx, row.Owner, told); err != nil {
		return out, err
	}
	if err := h.enter(ctx, row.Owner, typed); err != nil {
		return out, err
	}
	// A client that names a later event has seen everything before it.
	for _, e := range view {
		if e.ID == latest && e.InvocationID == out.invocation {
			out.after = max(out.after, e.Seq)
		}
	}
	return out, nil
}

// find returns the call that a reply answers, and the place of its event.
func find(view []*session.Record, r reply) (asked *genai.FunctionCall, seq int64, err error) {
	for e, call := range asks(view) {
		if call.ID == r.id && (r.name == "" || r.name == call.Name) {
			return call, shown(view, e, r.id), nil
		}
	}
	for _, call := range asks(view) {
		switch {
		case r.id != "" && call.ID == r.id:
			return nil, 0, invalid("functionResponse %s answers a call of the name %s, not %q", r.id, call.Name, brief(r.name))
		case r.id != "" && askedFor(call.Args) == r.id:
			return nil, 0, invalid("functionResponse %s is named after the tool call; reply with id %s and name %s", r.id, call.ID, call.Name)
		}
	}
	if r.name != "" && !request(r.name) {
		return nil, 0, notAsked(r.name)
	}
	return nil, 0, unknown(view, r.id)
}

func unknown(view []*session.Record, id string) error {
	var ids []string
	for _, call := range asks(view) {
		ids = append(ids, call.ID)
	}
	if len(ids) == 0 {
		return invalid("functionResponse %q: this session has asked for no login or approval, no answer and no result", brief(id))
	}
	return invalid("functionResponse %q: this session did not ask under that id; it asked under %s", brief(id), strings.Join(ids, ", "))
}

// shown is the place from where a client that replies has not seen the session: behind the question, or what was known last
// of a long-running call.
func shown(view []*session.Record, asked *session.Record, id string) int64 {
	seq := asked.Seq
	for _, e := range view {
		if e.Kind == session.KindInterim && slices.ContainsFunc(e.Responses(), func(r *genai.FunctionResponse) bool { return r.ID == id }) {
			seq = max(seq, e.Seq)
		}
	}
	return seq
}

// request says whether calls of that name ask a person.
func request(name string) bool {
	return name == agent.RequestCredential || name == agent.RequestConfirmation || name == agent.RequestInput
}

// asks yields the calls in view that wait for a reply, with their events: questions to people, and calls of long-running
// tools. Only what an agent's run wrote counts; it says itself which of a model's calls are long-running.
func asks(view []*session.Record) func(yield func(*session.Record, *genai.FunctionCall) bool) {
	return func(yield func(*session.Record, *genai.FunctionCall) bool) {
		for _, e := range view {
			for _, call := range e.Calls() {
				asked := e.Kind == session.KindRequest && request(call.Name) || e.Speaks() && slices.Contains(e.LongRunningToolIDs, call.ID)
				if asked && !yield(e, call) {
					return
				}
			}
		}
	}
}

func askedFor(args map[string]any) string {
	for key, value := range args {
		if id, ok := value.(string); ok && camel(key) == "functionCallId" {
			return id
		}
		if original, ok := value.(map[string]any); ok && camel(key) == "originalFunctionCall" {
			id, _ := original["id"].(string)
			return id
		}
	}
	return ""
}

// check says what is wrong with a response, or "".
func (h *Handler) check(response any, args map[string]any, request auth.Request) string {
	issued := map[string]any{}
	for key, value := range args {
		if config, ok := value.(map[string]any); ok && camel(key) == "authConfig" {
			issued, _ = normal(config).(map[string]any)
		}
	}
	c := checker{issued: issued, returned: func(uri string) string { return h.returned(uri, request) }}
	return c.response(response, 0)
}

// returned checks the address that a browser came back to. Our own connect page sends people back with our correlator and
// a ticket that means nothing; any other code is a real one. Where nobody was sent back to, the person has the address of our own
// callback to paste, and once the login is there its code is spent.
func (h *Handler) returned(uri string, request auth.Request) string {
	u, err := url.Parse(uri)
	if err != nil {
		return ""
	}
	q := u.Query()
	if fragment, err := url.ParseQuery(u.Fragment); err == nil {
		for _, key := range []string{"code", "state", "access_token", "id_token"} {
			if !q.Has(key) && fragment.Has(key) {
				q.Set(key, fragment.Get(key))
			}
		}
	}
	switch {
	case q.Get("access_token") != "", q.Get("id_token") != "":
		return "authResponseUri holds a token, which this server does not take from clients"
	case q.Get("code") == "":
		return ""
	case request.Status == auth.StatusGranted && h.ours(u) && strings.HasPrefix(u.Path, callbackPath):
		return ""
	case request.Correlator == "" || q.Get("state") != request.Correlator, !h.ours(u):
		return "authResponseUri holds an authorization code of a login that this server did not begin, and it was dropped"
	}
	return ""
}

// callbackPath is that of package connect, before the digest of an issuer.
const callbackPath = "/oauth/callback/"

func (h *Handler) ours(u *url.URL) bool {
	public, err := url.Parse(h.publicURL())
	if err == nil && u.Scheme == public.Scheme && strings.EqualFold(u.Host, public.Host) {
		return true
	}
	bare := *u
	bare.RawQuery, bare.Fragment = "", ""
	return slices.Contains(h.ReturnURLs, bare.String())
}

// wrapped decodes a string that is JSON, as some clients wrap their answer.
func wrapped(s string) (any, bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") {
		return nil, false
	}
	var v any
	return v, json.Unmarshal([]byte(s), &v) == nil
}
