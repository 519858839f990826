package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"tarry/session"
)

// writeTimeout is how long a client may take to read one frame: one that hangs must not hold its handler for ever.
const writeTimeout = 30 * time.Second

// Writer writes server-sent events. Not safe for concurrent use.
type Writer struct {
	w  http.ResponseWriter
	rc *http.ResponseController
	at Cursor
}

// NewWriter sends the header of an event stream with the given status.
func NewWriter(w http.ResponseWriter, status int) *Writer {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	out := &Writer{w: w, rc: http.NewResponseController(w)}
	w.WriteHeader(status)
	return out
}

// Flush sends what was written so far, the header at least.
func (s *Writer) Flush() error {
	if err := s.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// Begin says where the stream begins, before there is anything to tell: a reader that is cut off at once can come back. It is
// a frame without data, which clients keep the id of and show nothing for.
func (s *Writer) Begin(at Cursor) error {
	s.at = at
	return s.write([]byte(s.id() + "\n"))
}

// Next says that the first of the invocations that the reader follows has ended.
func (s *Writer) Next() {
	if len(s.at.Invocations) > 1 {
		s.at.Invocations = s.at.Invocations[1:]
	}
}

// Event writes an event as it was stored. The id line never goes back, so that a reader who resumes from it gets nothing
// twice.
func (s *Writer) Event(r *session.Record) error {
	s.at.Seq = max(s.at.Seq, r.Seq)
	return s.frame(s.id(), r.Body)
}

// Partial writes a piece of an answer that a model is still giving.
func (s *Writer) Partial(p session.Partial) error {
	s.at.Partial = max(s.at.Partial, p.Seq)
	return s.frame(s.id(), p.Body)
}

func (s *Writer) id() string { return "id: " + s.at.String() + "\n" }

// Data writes v as a frame; name is the event's type, empty for the default.
func (s *Writer) Data(name string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode frame: %w", err)
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	return s.frame(name, body)
}

// Comment writes a line that clients ignore.
func (s *Writer) Comment(text string) error {
	return s.write([]byte(": " + text + "\n\n"))
}

func (s *Writer) frame(head string, body []byte) error {
	var b bytes.Buffer
	b.WriteString(head)
	for line := range bytes.SplitSeq(body, []byte("\n")) {
		b.WriteString("data: ")
		b.Write(line)
		b.WriteString("\n")
	}
	b.WriteString("\n")
	return s.write(b.Bytes())
}

func (s *Writer) write(p []byte) error {
	if err := s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set write deadline: %w", err)
	}
	if _, err := s.w.Write(p); err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if err := s.Flush(); err != nil {
		return err
	}
	// The deadline is for this frame: the next may be days away, and the connection may serve other requests after it.
	if err := s.rc.SetWriteDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("clear write deadline: %w", err)
	}
	return nil
}
