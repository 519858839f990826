package adk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tarry/agent"
	"tarry/auth"
)

// Keys takes what people would type on the connect page. Package auth/keys has one. A mistake of the client is an
// [*auth.AnswerError]; [auth.ErrClosed] is for what came too late.
type Keys interface {
	// Check says whether a value can be sent.
	Check(k auth.Key, v auth.KeyValue) error
	Enter(ctx context.Context, access auth.Access, id string, v auth.KeyValue) (auth.Request, error)
}

// entry is a credential that a client sent for one request.
type entry struct {
	request string
	value   auth.KeyValue
}

// entries are those of one message. They go into the vault and nowhere else.
type entries []entry

// add reads a reply to a request for a key. A reply without one is an acknowledgement, as for logins; what else it holds must
// be what was asked with. What comes after an answer changes nothing, whatever it says.
func (d *entries) add(h *Handler, request auth.Request, said reply, args map[string]any) error {
	if slices.ContainsFunc(*d, func(o entry) bool { return o.request == said.id }) {
		return invalid("%s is answered twice in this message; the request stays as it is", said.id)
	}
	t := taker{key: *request.Need.Typed}
	rest := t.take(said.response, 0)
	if problem := h.check(rest, args, request); problem != "" {
		return invalid("%s: %s; send what was asked for in exchangedAuthCredential.%s and change nothing else, or open its authUri %s; the request stays as it is",
			said.id, problem, wants(t.key), request.Link(h.PublicURL))
	}
	if !t.found || !request.Status.Open() {
		return nil
	}
	if err := h.Keys.Check(t.key, t.value); err != nil {
		return h.unfit(said.id, err)
	}
	*d = append(*d, entry{said.id, t.value})
	return nil
}

// wants names the fields of ADK's AuthCredential.
func wants(k auth.Key) string {
	switch {
	case k.Basic():
		return "http.credentials.username and password"
	case k.Scheme != "":
		return "http.credentials.token"
	}
	return "apiKey"
}

// enter lets the entries count, as confirm does decisions.
func (h *Handler) enter(ctx context.Context, owner agent.Owner, all entries) error {
	for _, d := range all {
		_, err := h.Keys.Enter(ctx, func(o agent.Owner) bool { return o == owner }, d.request, d.value)
		if err != nil && !errors.Is(err, auth.ErrClosed) {
			return h.unfit(d.request, fmt.Errorf("enter key: %w", err))
		}
	}
	if len(all) > 0 {
		h.Wake()
	}
	return nil
}

// taker takes the credential of one kind out of a response.
type taker struct {
	key   auth.Key
	value auth.KeyValue
	found bool
}

// minBare is the least length of a text that counts as a key without saying so, in bytes: shorter ones are "done" and "ok".
const minBare = 8

// take returns v without the credential. It is an AuthConfig, a bare AuthCredential or, where one text is asked for, that text;
// each may be wrapped as {"result": …}, {"response": …} or {"authConfig": …}, or be JSON in a text.
func (t *taker) take(v any, depth int) any {
	if depth > maxWraps {
		return v
	}
	switch v := v.(type) {
	case string:
		if inner, ok := wrapped(v); ok {
			return t.take(inner, depth+1)
		}
		text := strings.TrimSpace(v)
		if t.key.Basic() || len(text) < minBare || strings.ContainsAny(text, " \t\r\n") || strings.Contains(text, "://") {
			return v
		}
		t.value.Secret, t.found = auth.NewSecret(text), true
		return nil
	case map[string]any:
		m, _ := normal(v).(map[string]any)
		exchanged, whole := m["exchangedAuthCredential"].(map[string]any)
		switch {
		case whole:
			t.credential(exchanged)
		case names(m, "authType", "apiKey", "http"):
			t.credential(m)
		default:
			for _, key := range []string{"result", "response", "authConfig"} {
				if inner, ok := m[key]; ok {
					m[key] = t.take(inner, depth+1)
				}
			}
		}
		return m
	}
	return v
}

// credential takes the fields of the kind that was asked for out of an AuthCredential; others stay, to be refused.
func (t *taker) credential(c map[string]any) {
	if t.key.Scheme == "" {
		t.value.Secret = t.field(c, "apiKey")
		return
	}
	http, _ := c["http"].(map[string]any)
	credentials, _ := http["credentials"].(map[string]any)
	if t.key.Basic() {
		t.value.Username, t.value.Secret = t.field(credentials, "username"), t.field(credentials, "password")
		return
	}
	t.value.Secret = t.field(credentials, "token")
}

func (t *taker) field(from map[string]any, name string) auth.Secret {
	text, ok := from[name].(string)
	if !ok || text == "" {
		return auth.Secret{}
	}
	delete(from, name)
	t.found = true
	return auth.NewSecret(text)
}
