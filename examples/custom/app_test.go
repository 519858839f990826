package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
	"tarry/tarrytest"
)

// library is a service that takes one token.
func library(t *testing.T, token string) (tarry.App, *[]http.Header) {
	t.Helper()
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"title":"` + strings.TrimPrefix(r.URL.Path, "/reports/") + `","text":"Sales rose."}`))
	}))
	t.Cleanup(server.Close)
	app, err := newApp(service{
		URL: server.URL, AuthorizeURL: "https://login.example/authorize", TokenURL: "https://login.example/token", ClientID: "reports-cli",
	}, server.Client())
	require.NoError(t, err)
	return app, &seen
}

func TestReportIsReadAfterTheLogin(t *testing.T) {
	app, seen := library(t, "good")
	run := tarrytest.Start(t, app, "What does the report say about spring?")
	require.Empty(t, *seen, "nothing is sent before the login")
	require.Equal(t, "reports", run.Waiting()[0].Key)

	run.Grant("reports", "good")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, "spring: Sales rose.", run.Answer())
	require.Len(t, *seen, 1)
	require.NotEmpty(t, (*seen)[0].Get("Idempotency-Key"))
}

func TestRefusedTokenIsAskedForAgain(t *testing.T) {
	app, _ := library(t, "good")
	run := tarrytest.Start(t, app, "What about spring?")
	run.Grant("reports", "stale")
	require.Len(t, run.Waiting(), 1, "the service did not take it")
	run.Grant("reports", "good")
	require.Equal(t, "spring: Sales rose.", run.Answer())
}

func TestDeniedLogin(t *testing.T) {
	app, seen := library(t, "good")
	run := tarrytest.Start(t, app, "What about spring?")
	run.Deny("reports")
	require.Contains(t, run.Answer(), "I could not read it")
	require.Empty(t, *seen)
}
