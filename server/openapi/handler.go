package openapi

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
)

// Handler serves the document. Safe for concurrent use.
type Handler struct {
	body []byte
	tag  string
}

// New puts the document together.
func New() (*Handler, error) {
	body, err := Document()
	if err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	sum := sha256.Sum256(body)
	return &Handler{body: body, tag: `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`}, nil
}

// Mount adds the route to mux. It needs no sign-in: the document is the same for every server and caller, and tools that make
// clients of it have nobody to sign in as.
func (h *Handler) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /openapi.json", h.serve)
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("ETag", h.tag)
	w.Header().Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == h.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(h.body) // the client is gone; nobody is left to tell
}
