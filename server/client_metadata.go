package server

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"

	"tarry/server/web"
)

// clientMetadata serves the OAuth client's metadata document to authorization servers, which sign in nowhere. Caches ask
// again each time: a provider that a login goes to for the first time must find its redirect URI in the list.
func (s *Server) clientMetadata(w http.ResponseWriter, r *http.Request) {
	body, err := s.Parts.Logins.MetadataDocument(r.Context())
	if err != nil {
		s.Log.ErrorContext(r.Context(), "client metadata", "err", err, "request_id", web.RequestID(r.Context()))
		web.Error(w, r, http.StatusServiceUnavailable, "not available at the moment")
		return
	}
	sum := sha256.Sum256(body)
	tag := `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client is gone; nobody is left to tell
}
