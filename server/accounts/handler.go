package accounts

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"

	"tarry/server/web"
)

const (
	defaultEntries = 500
	mostLimit      = 1000
)

// Handler serves the API. All fields must be set.
type Handler struct {
	Log         Audit
	Connections Connections
	Logger      *slog.Logger
}

// Mount adds the routes of the API to mux, which stands behind the sign-in.
func (h *Handler) Mount(mux *http.ServeMux) {
	const all = "/apps/{app}/users/{user}/accounts"
	mux.HandleFunc("GET /audit", h.json(h.audit))
	mux.HandleFunc("GET "+all, h.json(h.list))
	mux.HandleFunc("DELETE "+all+"/{account}", h.json(h.disconnect(false)))
	mux.HandleFunc("POST "+all+"/{account}/revoke", h.json(h.disconnect(true)))
}

// json makes a handler of a function that returns what to answer.
func (h *Handler) json(f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := f(r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		web.JSON(w, http.StatusOK, out)
	}
}

// fail answers an error; what the client may not read goes to the log, under the request id that it gets.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known *web.RequestError
	switch {
	case r.Context().Err() != nil: // the client is gone
	case errors.As(err, &known):
		web.Error(w, r, known.Status, known.Text)
	default:
		h.Logger.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", web.RequestID(r.Context()), "err", err)
		web.Error(w, r, http.StatusInternalServerError, "internal error; the server's log says more under this request id")
	}
}

func refuse(status int, format string, args ...any) error {
	return &web.RequestError{Status: status, Text: fmt.Sprintf(format, args...)}
}

func limit(query url.Values, usual int) (int, error) {
	text := query.Get("limit")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostLimit {
		return 0, refuse(http.StatusBadRequest, "limit is not a number from 1 to %d", mostLimit)
	}
	return n, nil
}
