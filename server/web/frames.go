package web

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// Failure is a failure as a frame of an event stream. ADK's web UI shows Error; Details has the fields of ADK's own.
type Failure struct {
	Error     string          `json:"error"`
	RequestID string          `json:"request_id,omitempty"`
	Details   *FailureDetails `json:"error_details,omitempty"`
}

// FailureDetails are for programs.
type FailureDetails struct {
	// Type is the reason phrase of the status that the failure has where there is no stream, without spaces: NotFound. RunEnded
	// for what happens to a run after the stream began.
	Type    string `json:"error_type"`
	Message string `json:"error_message"`
	// Status is that status; 0 after the stream began.
	Status int `json:"status,omitempty"`
}

// FailureOf makes the failure of a request; status 0 is for what happens after the stream began. text is written by us, as
// that of [Error].
func FailureOf(r *http.Request, status int, text string) Failure {
	kind := "RunEnded"
	if status != 0 {
		kind = strings.ReplaceAll(http.StatusText(status), " ", "")
	}
	return Failure{Error: text, RequestID: RequestID(r.Context()), Details: &FailureDetails{kind, text, status}}
}

type streamsKey struct{}

// Streams marks requests that match and whose Accept names event streams: [Error] answers them with one frame, because
// their clients read nothing else. It stands before whatever may fail.
func Streams(match func(*http.Request) bool) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if match(r) {
				r = marked(r)
			}
			next.ServeHTTP(w, r)
		})
	}
}

func marked(r *http.Request) *http.Request {
	if readsFrames(r) || !acceptsStream(r) {
		return r
	}
	return r.WithContext(context.WithValue(r.Context(), streamsKey{}, true))
}

// readsFrames says whether [Streams] has marked the request.
func readsFrames(r *http.Request) bool {
	marked, _ := r.Context().Value(streamsKey{}).(bool)
	return marked
}

const eventStream = "text/event-stream"

func acceptsStream(r *http.Request) bool {
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept"), ","), ",") {
		kind, params, err := mime.ParseMediaType(part)
		if err != nil || kind != eventStream {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err != nil || q > 0 {
			return true
		}
	}
	return false
}

// streamHeaders sets those of an event stream, as package stream does.
func streamHeaders(h http.Header) {
	h.Set("Content-Type", eventStream)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
}

// frame is f as it stands on a stream. It marshals whatever text it has.
func (f Failure) frame() []byte {
	body, err := json.Marshal(f)
	if err != nil {
		body = []byte(`{"error":"internal error"}`)
	}
	return append(append([]byte("data: "), body...), '\n', '\n')
}
