package openapitest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"sync"
	"testing"
)

// Check wraps h. It is called before the server that h is for is closed by a cleanup, so that the answers that are under way then
// are checked as well.
func Check(tb testing.TB, h http.Handler) http.Handler {
	tb.Helper()
	return check(tb, h, true)
}

// CheckAnswers is [Check] for tests that send what the document does not allow: handlers may ignore it.
func CheckAnswers(tb testing.TB, h http.Handler) http.Handler {
	tb.Helper()
	return check(tb, h, false)
}

func check(tb testing.TB, h http.Handler, requests bool) http.Handler {
	tb.Helper()
	c, r := load(tb), report(tb)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		x := Exchange{Method: req.Method, URL: req.URL, Sent: req.Header.Clone(), AnswerOnly: !requests}
		sent := &tee{ReadCloser: req.Body}
		if req.Body != nil {
			req.Body = sent
		}
		rec := &recorder{ResponseWriter: w}
		h.ServeHTTP(rec, req)
		x.Request, x.Read = sent.bytes()
		x.Status, x.Got, x.Answer = rec.status, w.Header().Clone(), rec.body.Bytes()
		if x.Status == 0 {
			x.Status = http.StatusOK
		}
		r.add(c.Problems(x))
	})
}

// Transport wraps base. An answer is checked when it has been read to its end, or closed. A
// client may send parameters that are not described: tests of whole systems do so on purpose.
func Transport(tb testing.TB, base http.RoundTripper) http.RoundTripper {
	tb.Helper()
	return &transport{load(tb), report(tb), base}
}

type transport struct {
	checker *Checker
	report  *reporter
	base    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x := Exchange{Method: req.Method, URL: req.URL, Sent: req.Header.Clone(), Loose: true}
	sent := &tee{ReadCloser: req.Body}
	if req.Body != nil {
		req = req.Clone(req.Context())
		req.Body = sent
	}
	res, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err //nolint:wrapcheck // a RoundTripper hands on the error it got
	}
	x.Status, x.Got = res.StatusCode, res.Header.Clone()
	got := &tee{ReadCloser: res.Body}
	got.done = sync.OnceFunc(func() {
		x.Request, x.Read = sent.bytes()
		x.Answer, _ = got.bytes()
		t.report.add(t.checker.Problems(x))
	})
	res.Body = got
	return res, nil
}

// tee keeps what is read.
type tee struct {
	io.ReadCloser

	mu     sync.Mutex
	buffer bytes.Buffer
	whole  bool
	done   func()
}

// Read implements io.Reader.
func (t *tee) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	t.mu.Lock()
	t.buffer.Write(p[:n])
	t.whole = t.whole || errors.Is(err, io.EOF)
	t.mu.Unlock()
	if err != nil && t.done != nil {
		t.done()
	}
	return n, err //nolint:wrapcheck // a Reader hands on the error it got
}

// Close implements io.Closer.
func (t *tee) Close() error {
	if t.done != nil {
		t.done()
	}
	return t.ReadCloser.Close() //nolint:wrapcheck // as above
}

func (t *tee) bytes() ([]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.buffer.Bytes()), t.whole
}

// recorder keeps what is answered.
type recorder struct {
	http.ResponseWriter

	status int
	body   bytes.Buffer
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 && status >= http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.body.Write(p[:n])
	return n, err //nolint:wrapcheck // a Writer hands on the error it got
}

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// reporter fails a test while that can still be done.
type reporter struct {
	tb testing.TB

	mu   sync.Mutex
	over bool
	seen map[string]bool
}

func report(tb testing.TB) *reporter {
	tb.Helper()
	r := &reporter{tb: tb, seen: map[string]bool{}}
	tb.Cleanup(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.over = true
	})
	return r
}

func (r *reporter) add(problems []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range problems {
		if !r.over && !r.seen[p] {
			r.seen[p] = true
			r.tb.Errorf("the OpenAPI document and the handlers differ: %s", p)
		}
	}
}
