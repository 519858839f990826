package web

import (
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"strings"
)

// JSON writes v. A v that cannot be marshalled answers 500.
func JSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":"internal error"}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // the client is gone; nobody is left to tell
}

// Error answers with a fixed text and the request id: a page where the client prefers HTML, as a browser that navigates
// does, else {"error": text, "request_id": id}. text is written by us; the cause belongs into the log.
func Error(w http.ResponseWriter, r *http.Request, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	id := RequestID(r.Context())
	if !WantsPage(r) {
		JSON(w, status, struct {
			Error     string `json:"error"`
			RequestID string `json:"request_id,omitempty"`
		}{text, id})
		return
	}
	PageHeaders(w.Header(), false)
	w.WriteHeader(status)
	page := struct {
		Frame

		Text string
	}{Frame{Title: http.StatusText(status), Reference: id}, text}
	_ = template.Must(Templates(nil, nil)).ExecuteTemplate(w, "error", page) // the client is gone; nobody is left to tell
}

// Refuse answers a [*RequestError] as it says, and anything else with 500 and a fixed text.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	var e *RequestError
	if errors.As(err, &e) {
		Error(w, r, e.Status, e.Text)
		return
	}
	Error(w, r, http.StatusInternalServerError, "internal error")
}

// WantsPage says whether the client asks for HTML rather than JSON.
func WantsPage(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	html := strings.Index(accept, "text/html")
	json := strings.Index(accept, "application/json")
	return html >= 0 && (json < 0 || html < json)
}
