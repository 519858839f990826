package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
	"tarry/tarrytest"
)

func service(t *testing.T) tarry.App {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("Write of dogs, never of cats."))
	}))
	t.Cleanup(server.Close)
	app, err := newApp(guides{URL: server.URL, AuthorizeURL: "https://login.example/authorize", TokenURL: "https://login.example/token", ClientID: "story"}, server.Client())
	require.NoError(t, err)
	return app
}

func TestStoryWaitsForTheStyleGuide(t *testing.T) {
	run := tarrytest.Start(t, service(t), "A story, please.")
	require.Equal(t, "guides", run.Waiting()[0].Key)
	require.Equal(t, "The cat was sad.", run.State()["story"], "the generator has run, the critic has not")
	run.Grant("guides", "good")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, "The dog was glad.", run.State()["story"])
	require.Equal(t, "positive", run.State()["tone"])
}

// A story that waits for weeks may have to go on in another run. Its function is called again there, and tells the same story.
func TestStoryGoesOnInAnotherRun(t *testing.T) {
	run := tarrytest.Start(t, service(t), "A story, please.")
	events := len(run.Events())
	run.ContinueAsNew()
	require.Equal(t, 2, run.Runs())
	require.Len(t, run.Events(), events, "nothing is said twice")
	require.Equal(t, "guides", run.Waiting()[0].Key, "nor forgotten, nor asked again")
	run.Grant("guides", "good")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, "The dog was glad.", run.State()["story"])

	short := tarrytest.Start(t, service(t), "A story, please.", tarrytest.WithShortRuns())
	short.Grant("guides", "good")
	require.Greater(t, short.Runs(), 2)
	require.Len(t, short.Events(), len(run.Events()), "wherever the runs end")
	require.Equal(t, "The dog was glad.", short.State()["story"])
}

func TestStoryWithoutTheStyleGuide(t *testing.T) {
	run := tarrytest.Start(t, service(t), "A story, please.")
	run.Deny("guides")
	require.Equal(t, "done", run.Outcome())
	require.Equal(t, "The cat was glad.", run.State()["story"])
}
