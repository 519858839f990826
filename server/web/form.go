package web

import (
	"mime"
	"net/http"
)

// ReadForm reads a form of at most limit bytes into r.PostForm. It returns false if it is none, or if the browser does not say
// that a page of the origin own has sent it. The CSRF token is the caller's to check.
func ReadForm(w http.ResponseWriter, r *http.Request, own string, limit int64) bool {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == "application/x-www-form-urlencoded" && (Sender{Own: own, Form: true}).Allows(r) && r.ParseForm() == nil
}
