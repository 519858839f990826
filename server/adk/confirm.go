package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tarry/agent"
	"tarry/auth"
)

// decision is what a person says to one call that waits for approval.
type decision struct {
	request   string
	confirmed bool
	said      auth.Consent
}

// decisions are those of one message.
type decisions []decision

// maxPayload bounds what comes back beside an approval, in bytes of JSON.
const maxPayload = 64 << 10

// add reads a reply. One message does not say yes and no to the same call.
func (d *decisions) add(r reply) error {
	answer, ok := consent(r.response, 0)
	if !ok {
		return invalid(`%s: the response is not {"confirmed": true} or {"confirmed": false}, with a payload if one was offered; the request stays as it is`, r.id)
	}
	if slices.ContainsFunc(*d, func(o decision) bool { return o.request == r.id }) {
		return invalid("%s is answered twice in this message; the request stays as it is", r.id)
	}
	out := decision{request: r.id, confirmed: answer["confirmed"] == true} // no other value is consent: not "true", not 1
	if payload := answer["payload"]; payload != nil {
		body, err := json.Marshal(payload)
		if err != nil || len(body) > maxPayload {
			return invalid("%s: the payload is larger than %d bytes; the request stays as it is", r.id, maxPayload)
		}
		out.said.Payload = string(body)
	}
	*d = append(*d, out)
	return nil
}

// consent finds ADK's ToolConfirmation in a response, which may be wrapped as {"response": "JSON"}.
func consent(v any, depth int) (map[string]any, bool) {
	switch v := v.(type) {
	case string:
		inner, ok := wrapped(v)
		if !ok || depth > maxWraps {
			return nil, false
		}
		return consent(inner, depth+1)
	case map[string]any:
		if _, ok := v["confirmed"]; ok {
			return v, true
		}
		inner, ok := v["response"]
		if !ok || len(v) != 1 || depth > maxWraps {
			return nil, false
		}
		return consent(inner, depth+1)
	}
	return nil, false
}

// confirm lets the decisions count. One that comes after another, or after the deadline, changes nothing, and the client
// hears what came of it.
func (h *Handler) confirm(ctx context.Context, owner agent.Owner, all decisions) error {
	for _, d := range all {
		_, err := h.Confirmations.Confirm(ctx, func(o agent.Owner) bool { return o == owner }, d.request, d.confirmed, d.said)
		if err != nil && !errors.Is(err, auth.ErrClosed) {
			return fmt.Errorf("confirm: %w", err)
		}
	}
	if len(all) > 0 {
		h.Wake()
	}
	return nil
}
