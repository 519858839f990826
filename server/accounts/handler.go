package accounts

import (
	"log/slog"
	"net/http"

	"tarry/server/web"
)

const defaultEntries = 500

// Handler serves the API. All fields must be set.
type Handler struct {
	Log         Audit
	Connections Connections
	Logger      *slog.Logger
}

// Mount adds the routes of the API to mux, which stands behind the sign-in.
func (h *Handler) Mount(mux *http.ServeMux) {
	const all = "/apps/{app}/users/{user}/accounts"
	mux.HandleFunc("GET /audit", web.Answer(h.Logger, http.StatusOK, h.audit))
	mux.HandleFunc("GET "+all, web.Answer(h.Logger, http.StatusOK, h.list))
	mux.HandleFunc("DELETE "+all+"/{account}", web.Answer(h.Logger, http.StatusOK, h.disconnect(false)))
	mux.HandleFunc("POST "+all+"/{account}/revoke", web.Answer(h.Logger, http.StatusOK, h.disconnect(true)))
}
