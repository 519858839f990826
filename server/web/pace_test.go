package web_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

// A client that asks and does not read holds its handler no longer than the patience for one piece; the next one on the same
// server is served, also after a pause that is longer than that.
func TestHangingReaders(t *testing.T) {
	t.Parallel()
	const patience = 200 * time.Millisecond
	ended := make(chan error, 1)
	pause := make(chan struct{}, 1)
	s := httptest.NewServer(web.Chain(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/pause" {
			_, _ = io.WriteString(w, "first")
			_ = http.NewResponseController(w).Flush()
			<-pause
			_, _ = io.WriteString(w, "second")
			return
		}
		if r.URL.Path == "/small" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		_, err := w.Write(make([]byte, 64<<20))
		ended <- err
	}), web.WriteTimeout(patience)))
	defer s.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	require.NoError(t, err)
	select {
	case err := <-ended:
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	case <-time.After(time.Minute):
		t.Fatal("the handler hangs")
	}

	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	get := func(path string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
		require.NoError(t, err)
		resp, err := client.Do(req)
		require.NoError(t, err)
		return resp
	}
	resp := get("/pause")
	first := make([]byte, 5)
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	time.AfterFunc(2*patience, func() { pause <- struct{}{} })
	rest, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, "second", string(rest), "a handler may take its time between two writes")
	time.AfterFunc(2*patience, func() { pause <- struct{}{} })
	<-pause
	resp = get("/small") // on the same connection, whose last deadline is over
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusNoContent, resp.StatusCode)
}

// A body may take longer than the patience as long as its bytes come: 64 KB have two seconds more.
func TestBodiesAtAPace(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	s := httptest.NewServer(web.BodyTimeout(patience)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != 65<<10 {
			w.WriteHeader(http.StatusBadRequest)
		}
	})))
	defer s.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 66560\r\n\r\n"+strings.Repeat("x", 64<<10))
	require.NoError(t, err)
	later := make(chan error, 1)
	time.AfterFunc(2*patience, func() {
		_, err := io.WriteString(conn, strings.Repeat("x", 1<<10))
		later <- err
	})
	require.NoError(t, <-later)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusOK, resp.StatusCode)
}

func TestTooDeep(t *testing.T) {
	t.Parallel()
	for text, deep := range map[string]bool{
		"": false, "{}": false, strings.Repeat("[", web.MaxDepth) + strings.Repeat("]", web.MaxDepth): false, strings.Repeat("[", web.MaxDepth+1): true,
		strings.Repeat(`{"a":`, web.MaxDepth+1): true, strings.Repeat("[]", 1000): false, `"` + strings.Repeat("[", 1000) + `"`: false,
		`"\"` + strings.Repeat("[", 1000) + `"`: false, `"\\"` + strings.Repeat("[", 1000): true, `"` + strings.Repeat(`\"[`, 1000): false, strings.Repeat("]", 1000) + strings.Repeat("[", 101): false,
	} {
		require.Equal(t, deep, web.TooDeep([]byte(text)), "%.40q", text)
	}
}
