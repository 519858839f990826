package web

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// leastPace is how slow a client may send or read beyond the patience that it has anyway, in bytes a second.
const leastPace = 32 << 10

// BodyTimeout bounds how long a client may take to send a body: patience, and what its bytes take at the least pace. What the
// handler does afterwards takes as long as it likes.
func BodyTimeout(patience time.Duration) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control, over := http.NewResponseController(w), time.Now().Add(patience)
			if r.ContentLength != 0 && control.SetReadDeadline(over) == nil {
				r.Body = &timedBody{ReadCloser: r.Body, control: control, over: over}
			}
			next.ServeHTTP(w, r)
		})
	}
}

// timedBody lifts the deadline with the end of the body: net/http reads on then, to notice a client that goes away.
type timedBody struct {
	io.ReadCloser

	control *http.ResponseController
	over    time.Time
}

// Read implements io.Reader.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		_ = b.control.SetReadDeadline(time.Time{}) // it could be set, so it can be lifted
	case n > 0:
		b.over = b.over.Add(took(n))
		_ = b.control.SetReadDeadline(b.over)
	}
	return n, err //nolint:wrapcheck // a Reader hands on the error it got
}

func took(bytes int) time.Duration { return time.Duration(bytes) * time.Second / leastPace }

// WriteTimeout bounds how long a client may take to read what a handler has written, piece by piece: one that hangs must not
// hold its handler for ever. Between two writes a handler takes as long as it likes.
func WriteTimeout(patience time.Duration) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := &timedWriter{ResponseWriter: w, control: http.NewResponseController(w), patience: patience}
			// The connection may have the deadline of the answer before, and what is buffered is sent when the handler has returned.
			_ = out.control.SetWriteDeadline(time.Time{}) // without deadlines there is nothing to lift
			defer out.extend()
			next.ServeHTTP(out, r)
		})
	}
}

// timedWriter extends the deadline with each piece. Unwrap keeps [http.ResponseController] working through it.
type timedWriter struct {
	http.ResponseWriter

	control  *http.ResponseController
	patience time.Duration
}

// maxPiece is what is written under one deadline, in bytes.
const maxPiece = 1 << 20

func (t *timedWriter) extend() {
	_ = t.control.SetWriteDeadline(time.Now().Add(t.patience)) // of a writer that has none, as in tests
}

// Write implements io.Writer.
func (t *timedWriter) Write(p []byte) (written int, err error) {
	for {
		piece := p[written:min(len(p), written+maxPiece)]
		t.extend()
		n, err := t.ResponseWriter.Write(piece)
		if written += n; err != nil || written == len(p) {
			return written, err //nolint:wrapcheck // a Writer hands on the error it got
		}
	}
}

// Unwrap returns what it wraps.
func (t *timedWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }
