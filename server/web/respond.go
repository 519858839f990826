package web

import (
	"encoding/json"
	"errors"
	"html/template"
	"log/slog"
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

// Error answers with a fixed text and the request id: a frame where [Streams] says so, a page where the client prefers HTML,
// as a browser that navigates does, else {"error": text, "request_id": id}. text is written by us; the cause belongs into the
// log.
func Error(w http.ResponseWriter, r *http.Request, status int, text string) {
	w.Header().Set("Cache-Control", "no-store")
	id := RequestID(r.Context())
	if readsFrames(r) {
		writeFrame(w, status, FailureOf(r, status, text))
		return
	}
	if !WantsPage(r) {
		JSON(w, status, Failure{Error: text, RequestID: id})
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

// internalError is what callers read of errors that are not theirs.
const internalError = "internal error; the server's log says more under this request id"

// Explain says what to answer to err: what a [*RequestError] says, or 500 and a fixed text. Then the cause goes to log, under the
// request id that the caller gets. show is false when the client is gone, and that is why.
func Explain(r *http.Request, log *slog.Logger, err error) (status int, text string, show bool) {
	var e *RequestError
	if errors.As(err, &e) {
		return e.Status, bounded(e.Text), true // also where the body was too slow, which ends the context
	}
	if r.Context().Err() != nil {
		return 0, "", false
	}
	log.ErrorContext(r.Context(), "request failed", "path", r.URL.Path, "request_id", RequestID(r.Context()), "err", err)
	return http.StatusInternalServerError, internalError, true
}

// maxText bounds a failure's text, in bytes: some repeat an id that the caller sent.
const maxText = 2000

func bounded(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// FailStream answers the failure of a handler that would have answered with a stream. A client whose Accept names event streams
// gets a frame with status 200, as from ADK. Only a body that is too large keeps its status, with the frame: proxies give the
// same.
func FailStream(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	status, text, show := Explain(r, log, err)
	if r = marked(r); !show {
		return
	}
	if !readsFrames(r) || status == http.StatusRequestEntityTooLarge {
		Error(w, r, status, text)
		return
	}
	writeFrame(w, http.StatusOK, FailureOf(r, status, text))
}

func writeFrame(w http.ResponseWriter, status int, f Failure) {
	streamHeaders(w.Header())
	w.WriteHeader(status)
	_, _ = w.Write(f.frame()) //nolint:gosec // JSON in an event stream, which no browser takes for a page; the client may be gone
}

// Refuse answers what [Explain] says.
func Refuse(w http.ResponseWriter, r *http.Request, log *slog.Logger, err error) {
	if status, text, show := Explain(r, log, err); show {
		Error(w, r, status, text)
	}
}

// Answer makes a handler of a function that returns what to answer, as JSON that nobody keeps.
func Answer(log *slog.Logger, status int, f func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		out, err := f(r)
		if err != nil {
			Refuse(w, r, log, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		JSON(w, status, out)
	}
}

// WantsPage says whether the client asks for HTML rather than JSON.
func WantsPage(r *http.Request) bool {
	accept := r.Header.Get("Accept")
	html := strings.Index(accept, "text/html")
	json := strings.Index(accept, "application/json")
	return html >= 0 && (json < 0 || html < json)
}
