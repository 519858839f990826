package runs

import (
	"context"
	"encoding/json"
	"net/http"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/web"
	"tarry/session"
)

// Confirmations takes what people say to calls that wait for their approval. Package auth/inputs has one.
type Confirmations interface {
	// Confirm ends an open request that access allows; [auth.ErrClosed] when it was not open any more.
	Confirm(ctx context.Context, access auth.Access, id string, confirmed bool, said auth.Consent) (auth.Request, error)
}

// Decision is the body that answers a call which waits for approval.
type Decision struct {
	// Confirmed must be there; only true is consent.
	Confirmed *bool `json:"confirmed"`
	// Payload is what the tool wants back, if anything.
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Decided says how a request has ended.
type Decided struct {
	Request string      `json:"request"`
	Status  auth.Status `json:"status"`
}

// confirm answers a request of the session that waits for approval. The first answer counts.
func (h *Handler) confirm(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	var in Decision
	if err := web.Decode(r, &in, maxBody); err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	if in.Confirmed == nil {
		return nil, web.Refusal(http.StatusBadRequest, "confirmed is missing: say true or false")
	}
	id := r.PathValue("request")
	_, access, err := h.asked(r, row, id, auth.TypeConfirmation)
	if err != nil {
		return nil, err
	}
	said := auth.Consent{}
	if len(in.Payload) > 0 && string(in.Payload) != "null" {
		said.Payload = string(in.Payload)
	}
	q, err := h.Confirmations.Confirm(r.Context(), access, id, *in.Confirmed, said)
	return h.decided(q, err)
}

// explain adds to the calls that wait for approval what they would do. Only what an agent's run wrote counts.
func explain(waiting []Waiting, e *session.Record) {
	if e.Kind != session.KindRequest {
		return
	}
	for _, call := range e.Calls() {
		for i := range waiting {
			if waiting[i].Request != call.ID || call.Name != agent.RequestConfirmation {
				continue
			}
			original, _ := call.Args["originalFunctionCall"].(map[string]any)
			confirmation, _ := call.Args["toolConfirmation"].(map[string]any)
			waiting[i].Hint, _ = confirmation["hint"].(string)
			if args, err := json.Marshal(original["args"]); err == nil {
				waiting[i].Arguments = args
			}
		}
	}
}
