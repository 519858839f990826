package runs

import (
	"context"
	"errors"
	"net/http"

	"tarry/auth"
	"tarry/server/web"
)

// Keys takes what people would type on the connect page. Package auth/keys has one. A mistake of the caller is an
// [*auth.AnswerError]; [auth.ErrClosed] is for what came too late.
type Keys interface {
	Enter(ctx context.Context, access auth.Access, id string, v auth.KeyValue) (auth.Request, error)
	// Refuse ends, without a key, what waits behind the link of a request up to the one that was shown.
	Refuse(ctx context.Context, access auth.Access, id, shown string) (auth.Request, error)
}

// Entry is the body that answers a request for a key.
type Entry struct {
	// Secret is the API key, the bearer token, or the password of Username.
	Secret   string `json:"secret,omitempty"`
	Username string `json:"username,omitempty"`
	// Decline says that there will be none.
	Decline bool `json:"decline,omitempty"`
}

// key puts what was sent into the vault and ends the request. The first answer counts.
func (h *Handler) key(r *http.Request) (any, error) {
	row, err := h.session(r)
	if err != nil {
		return nil, err
	}
	var in Entry
	if err := web.Decode(r, &in, maxBody); err != nil {
		return nil, err //nolint:wrapcheck // a RequestError is what the caller gets
	}
	id := r.PathValue("request")
	q, access, err := h.asked(r, row, id, kindKey)
	switch {
	case err != nil:
		return nil, err
	case !q.Status.Open():
		return nil, over(q)
	case in.Decline:
		q, err = h.Keys.Refuse(r.Context(), access, id, id)
	default:
		q, err = h.Keys.Enter(r.Context(), access, id, auth.KeyValue{Username: auth.NewSecret(in.Username), Secret: auth.NewSecret(in.Secret)})
	}
	var wrong *auth.AnswerError
	if errors.As(err, &wrong) {
		return nil, web.Refusal(http.StatusUnprocessableEntity, "secret: %s; the request stays as it is", wrong.Text)
	}
	return h.decided(q, err)
}
