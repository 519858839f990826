package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

// Whoever reads event streams alone gets every failure as a frame, wherever it happens; others get it as JSON.
func TestFailuresAsFrames(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, nil))
	isStream := func(r *http.Request) bool { return r.URL.Path == "/run_sse" }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /run_sse", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("f") {
		case "gate":
			w.Header().Set("WWW-Authenticate", "Bearer")
			web.Error(w, r, http.StatusUnauthorized, "sign in first")
		case "rate":
			web.TooMany(w, r, 1500*time.Millisecond)
		case "handler":
			web.FailStream(w, r, log, web.Refusal(http.StatusBadRequest, "log in at %s instead", "https://tarry.example/connect?request=r"))
		case "large":
			var v any
			web.FailStream(w, r, log, web.Decode(r, &v, 1))
		case "broken":
			web.FailStream(w, r, log, errors.New("SECRET"))
		case "panic":
			panic("SECRET")
		case "late panic":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {\"half")
			panic("SECRET")
		}
	})
	server := httptest.NewServer(web.Chain(mux, web.RequestIDs(), web.Streams(isStream), web.AccessLog(log), web.Recover(log)))
	t.Cleanup(server.Close)
	for name, tc := range map[string]struct {
		frame, plain int // statuses
		says         string
	}{
		"gate":    {401, 401, "sign in first"},
		"rate":    {429, 429, "too many requests"},
		"handler": {200, 400, "https://tarry.example/connect?request=r"},
		"large":   {413, 413, "larger than 1 bytes"},
		"broken":  {200, 500, "internal error"},
		"panic":   {500, 500, "internal error"},
	} {
		for _, accept := range []string{"text/event-stream", "application/json, text/event-stream;q=0.9", "TEXT/Event-Stream; charset=utf-8"} {
			res, body := post(t, server.URL+"/run_sse?f="+strings.ReplaceAll(name, " ", "+"), accept)
			require.Equal(t, tc.frame, res.StatusCode, name)
			require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"), name)
			require.Equal(t, "no-store", res.Header.Get("Cache-Control"), name)
			data, ok := strings.CutPrefix(strings.TrimSuffix(body, "\n\n"), "data: ")
			require.True(t, ok, body)
			require.NotContains(t, data, "\n", "the web UI reads one line")
			var told web.Failure
			require.NoError(t, json.Unmarshal([]byte(data), &told))
			require.Contains(t, told.Error, tc.says)
			require.Equal(t, res.Header.Get(web.RequestIDHeader), told.RequestID)
			require.Equal(t, web.FailureDetails{Type: strings.ReplaceAll(http.StatusText(tc.plain), " ", ""), Message: told.Error, Status: tc.plain}, *told.Details)
		}
		for _, accept := range []string{"", "*/*", "application/json", "text/event-stream;q=0", "text/event-streams", "application/text/event-stream"} {
			res, body := post(t, server.URL+"/run_sse?f="+strings.ReplaceAll(name, " ", "+"), accept)
			require.Equal(t, tc.plain, res.StatusCode, name)
			require.Equal(t, "application/json", res.Header.Get("Content-Type"), name)
			require.JSONEq(t, `{"error":`+quoted(t, body)+`,"request_id":"`+res.Header.Get(web.RequestIDHeader)+`"}`, body)
		}
	}
	res, _ := post(t, server.URL+"/run_sse?f=gate", "text/event-stream")
	require.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
	res, _ = post(t, server.URL+"/run_sse?f=rate", "text/event-stream")
	require.Equal(t, "2", res.Header.Get("Retry-After"))

	_, body := post(t, server.URL+"/run_sse?f=late+panic", "text/event-stream")
	_, last, ok := strings.Cut(body, "\n\ndata: ")
	require.True(t, ok, body)
	var told web.Failure
	require.NoError(t, json.Unmarshal([]byte(last), &told))
	require.Equal(t, "RunEnded", told.Details.Type)

	// Elsewhere half an answer does not look whole.
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/run_sse?f=late+panic", nil)
	require.NoError(t, err)
	if res, err := http.DefaultClient.Do(r); err == nil {
		_, err = io.ReadAll(res.Body)
		require.Error(t, err)
		require.NoError(t, res.Body.Close())
	}
	server.Close() // and with it whoever writes to the log
	require.NotContains(t, strings.ReplaceAll(logs.String(), "err=SECRET", ""), "SECRET")
}

// plainAnswer is an answer whose body was read.
type plainAnswer struct {
	StatusCode int
	Header     http.Header
}

func post(t *testing.T, url, accept string) (plainAnswer, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	require.NoError(t, err)
	r.Header["Accept"] = []string{accept}
	res, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NotContains(t, string(body), "SECRET")
	return plainAnswer{res.StatusCode, res.Header}, string(body)
}

func quoted(t *testing.T, body string) string {
	t.Helper()
	var told struct{ Error json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(body), &told))
	return string(told.Error)
}
