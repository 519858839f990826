package demo

import "net/http"

// recorder notes what the journal keeps of an answer.
type recorder struct {
	http.ResponseWriter
	status     int
	params     map[string][]string
	oauthError string
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Flush lets an event stream through.
func (r *recorder) Flush() {
	if f, ok := r.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
}

// Unwrap is for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// note hands params and error code of the current request to the journal.
func note(w http.ResponseWriter, params map[string][]string, oauthError string) {
	if rec, ok := w.(*recorder); ok {
		rec.params, rec.oauthError = params, oauthError
	}
}
