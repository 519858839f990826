package models_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/models"
)

func TestStatusDecidesRetry(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		kind  models.Kind
		retry bool
	}{
		301: {models.KindInvalid, false},
		400: {models.KindInvalid, false},
		401: {models.KindAuth, false},
		403: {models.KindAuth, false},
		404: {models.KindInvalid, false},
		408: {models.KindTimeout, true},
		409: {models.KindConflict, true},
		413: {models.KindInvalid, false},
		422: {models.KindInvalid, false},
		429: {models.KindRateLimit, true},
		500: {models.KindServer, true},
		502: {models.KindServer, true},
		503: {models.KindServer, true},
		529: {models.KindServer, true},
	} {
		err := models.StatusError("p", status, nil, "", time.Time{})
		require.Equal(t, want.kind, err.Kind, status)
		require.Equal(t, want.retry, err.Retryable(), status)
		require.Contains(t, err.Error(), fmt.Sprintf("HTTP %d", status))
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, after, afterMS string
		want                 time.Duration
	}{
		{"absent", "", "", 0},
		{"seconds", "7", "", 7 * time.Second},
		{"fraction", "1.5", "", 1500 * time.Millisecond},
		{"milliseconds win", "7", "250", 250 * time.Millisecond},
		{"bad milliseconds", "7", "soon", 7 * time.Second},
		{"date", "Fri, 01 May 2026 12:00:09 GMT", "", 9 * time.Second},
		{"past date", "Fri, 01 May 2026 11:00:00 GMT", "", 0},
		{"negative", "-3", "", 0},
		{"zero", "0", "", 0},
		{"words", "in a while", "", 0},
		{"not a number", "NaN", "", 0},
		{"infinite", "Inf", "", 24 * time.Hour},
		{"huge", "99999999999999999999", "", 24 * time.Hour},
		{"far date", "Fri, 01 May 2099 12:00:09 GMT", "", 24 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			if tt.after != "" {
				header.Set("Retry-After", tt.after)
			}
			if tt.afterMS != "" {
				header.Set("retry-after-ms", tt.afterMS)
			}
			require.Equal(t, tt.want, models.StatusError("p", 429, header, "", now).RetryAfter)
		})
	}
}

func TestStreamErrorsAreJudgedByReason(t *testing.T) {
	t.Parallel()
	for reason, retry := range map[string]bool{
		"":                        true,
		"server_error":            true,
		"UNAVAILABLE":             true,
		"RESOURCE_EXHAUSTED":      true,
		"rate_limit_exceeded":     true,
		"INVALID_ARGUMENT":        false,
		"context_length_exceeded": false,
		"invalid_api_key":         false,
	} {
		require.Equal(t, retry, models.StatusError("p", 0, nil, reason, time.Time{}).Retryable(), reason)
	}
}

func TestErrorReasonKeepsKnownWordsOnly(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"sk-secret"}}`:    "INVALID_ARGUMENT",
		`[{"error":{"code":503,"status":"UNAVAILABLE"}}]`:                             "UNAVAILABLE",
		`{"error":{"type":"invalid_request_error","code":"context_length_exceeded"}}`: "context_length_exceeded",
		`{"error":{"type":"server_error","code":null}}`:                               "server_error",
		`{"type":"server_error"}`:                                                     "server_error",
		`{"error":{"code":"sk-secret"}}`:                                              "",
		`{"error":"sk-secret"}`:                                                       "",
		`<html>`:                                                                      "",
		``:                                                                            "",
	} {
		require.Equal(t, want, models.ErrorReason([]byte(body)), body)
	}
	require.NotContains(t, models.StatusError("p", 400, nil, "sk-secret", time.Time{}).Error(), "sk-secret")
}

func TestCallError(t *testing.T) {
	t.Parallel()
	known := &models.Error{Kind: models.KindRateLimit, Provider: "p"}
	done, cancel := context.WithCancel(t.Context())
	cancel()
	secret := errors.New("body with sk-secret")
	for _, tt := range []struct {
		name     string
		ctx      context.Context
		answered bool
		err      error
		kind     models.Kind
		retry    bool
	}{
		{"known", t.Context(), true, fmt.Errorf("lib: %w", known), models.KindRateLimit, true},
		{"known wins over the context", done, true, known, models.KindRateLimit, true},
		{"refused", t.Context(), false, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, models.KindNetwork, true},
		{"no such host", t.Context(), false, &net.DNSError{Name: "secret.example"}, models.KindNetwork, true},
		{"cut", t.Context(), true, io.ErrUnexpectedEOF, models.KindNetwork, true},
		{"client timeout", t.Context(), true, context.DeadlineExceeded, models.KindNetwork, true},
		{"garbage", t.Context(), true, secret, models.KindUnreadable, true},
		{"before sending", t.Context(), false, secret, models.KindInvalid, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var err *models.Error
			require.ErrorAs(t, models.CallError(tt.ctx, "p", tt.answered, tt.err), &err)
			require.Equal(t, tt.kind, err.Kind)
			require.Equal(t, tt.retry, err.Retryable())
			require.NotContains(t, err.Error(), "secret")
		})
	}
	require.NoError(t, models.CallError(t.Context(), "p", false, nil))
	require.ErrorIs(t, models.CallError(done, "p", true, secret), context.Canceled)
}

func TestHTTPClientFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	var second bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { second = true }))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler(other.URL+"/?key=secret", http.StatusTemporaryRedirect))
	defer first.Close()

	client := models.HTTPClient("p", &http.Client{})
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, first.URL, strings.NewReader("{}"))
	require.NoError(t, err)
	resp, err := client.Do(req)
	if resp != nil {
		_ = resp.Body.Close()
	}
	var call *models.Error
	require.ErrorAs(t, err, &call)
	require.Equal(t, 307, call.StatusCode)
	require.False(t, call.Retryable())
	require.False(t, second)
}
