package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wireModel answers a provider's API with prepared bodies, one per turn: the turn is told by whether a tool's result is in
// the request.
type wireModel struct {
	url   string
	calls atomic.Int64
	mu    sync.Mutex
	seen  []string
}

func newWireModel(t *testing.T, answers []string) *wireModel {
	t.Helper()
	m := &wireModel{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.calls.Add(1)
		m.mu.Lock()
		m.seen = append(m.seen, r.Header.Get("Authorization")+r.Header.Get("X-Goog-Api-Key"))
		m.mu.Unlock()
		body, _ := io.ReadAll(r.Body)
		turn := 0
		if strings.Contains(string(body), "Rate limits per client") {
			turn = 1
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answers[turn])
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *wireModel) keys() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.seen, " ")
}
