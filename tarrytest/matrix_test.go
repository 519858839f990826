package tarrytest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/internal/matrix"
	"tarry/tarrytest"
)

// finish answers all that a run waits for, until it ends; before says what is done to each run that waits.
func finish(t *testing.T, run *tarrytest.Run, before func()) {
	t.Helper()
	for run.Outcome() == "" {
		before()
		w := run.Waiting()[0]
		switch w.Kind {
		case tarrytest.KindLogin:
			run.Grant(w.Key, "token")
		case tarrytest.KindConfirmation:
			require.JSONEq(t, `{"amount":3}`, string(w.Args))
			run.Approve(w.Request)
		case tarrytest.KindQuestion:
			require.Equal(t, "How many?", w.Message)
			run.Reply(12, w.Request)
		case tarrytest.KindResult:
			run.Interim(map[string]any{"status": "halfway"}, w.Request)
			before()
			run.Complete(map[string]any{"status": "done"}, w.Request)
		case tarrytest.KindInput:
			require.Fail(t, "no server asks in the matrix")
		}
	}
	require.Equal(t, "done", run.Outcome())
}

// transcript is what was said, without ids. What runs side by side is said in any order.
func transcript(t *testing.T, run *tarrytest.Run, kind string) (lines []string) {
	t.Helper()
	for _, e := range run.Events() {
		line := fmt.Sprint(e.Author, e.Branch, e.Text(), e.Actions.StateDelta)
		for _, c := range e.Calls() {
			args := maps.Clone(c.Args)
			if strings.HasPrefix(c.Name, "adk_request_") {
				args = nil
			}
			line += fmt.Sprint("calls ", c.Name, args)
		}
		for _, r := range e.Responses() {
			body, err := json.Marshal(r.Response)
			require.NoError(t, err)
			line += fmt.Sprint("response ", r.Name, string(body))
		}
		lines = append(lines, line)
	}
	if kind == "parallel" {
		slices.Sort(lines)
	}
	return lines
}

// Every kind of agent with every kind of wait says the same, wherever its runs end and go on as others.
func TestMatrix(t *testing.T) {
	t.Parallel()
	app, err := matrix.App(agent.Auth{
		Key: "matrix", Type: agent.AuthOAuth2, AuthorizationURL: "https://login.example/authorize", TokenURL: "https://login.example/token", ClientID: "matrix",
	})
	require.NoError(t, err)
	for wait, tool := range matrix.WaitTools() {
		for kind := range matrix.Kinds(tool, wait) {
			t.Run(kind+"_"+wait, func(t *testing.T) {
				t.Parallel()
				faults := []string{"none", "continued"}
				if wait == "confirmation" { // where a turn ends does not depend on what is waited for
					faults = append(faults, "short")
				}
				var want []string
				for _, fault := range faults {
					opts := []tarrytest.Option{tarrytest.WithApp(kind + "_" + wait)}
					if fault == "short" {
						opts = append(opts, tarrytest.WithShortRuns())
					}
					run := tarrytest.Start(t, app, "Go on.", opts...)
					finish(t, run, func() {
						if fault == "continued" {
							run.ContinueAsNew()
						}
					})
					require.Equal(t, fault != "none", run.Runs() > 1, "%d runs", run.Runs())
					got := transcript(t, run, kind)
					if fault == "none" {
						want = got
					}
					require.NotEmpty(t, got)
					require.Equal(t, want, got, fault)
				}
			})
		}
	}
}
