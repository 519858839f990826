package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

const callers = 20

// refreshing is a world of two workers with twenty runs that are about to call list_tickets at once, with a token that has
// ended. The provider rotates refresh tokens, takes a whole grant back when an old one comes again, and answers slowly.
func refreshing(t *testing.T) (w *world, runs []runHandle, start func()) {
	t.Helper()
	w = newWorld(t, single(call("slow")+call("list_tickets")+text("ok")))
	require.NoError(t, w.Start(t.Context(), stack.SecondWorker))
	gate := w.mcp.HoldSlow()
	for i := range callers {
		runs = append(runs, w.api.start("assistant", fmt.Sprint("Go, ", i)))
	}
	links := map[string]bool{}
	for _, r := range runs {
		links[w.waiting(r)] = true
	}
	require.Len(t, links, 1)
	for link := range links {
		w.login(link)
	}
	for range callers {
		select {
		case <-gate.Arrived():
		case <-time.After(patience):
			require.Fail(t, "the calls do not come")
		}
	}
	w.provider.RevokeAccessTokens()
	w.provider.SetFaults(func(f *demo.Faults) { f.TokenDelay = 500 * time.Millisecond })
	return w, runs, gate.Open
}

// checkCalls: every run succeeded, and what is stored is what the provider issued last, used once.
func (w *world) checkCalls(runs []runHandle, approvals int) {
	w.t.Helper()
	for i, r := range runs {
		require.Equal(w.t, "done", w.finished(r).InvocationStatus, "run %d", i)
		answers := responses(r.events(), "list_tickets")
		require.Len(w.t, answers, 1, "run %d", i)
		require.NotContains(w.t, answers[0].Response, "error", "run %d", i)
	}
	require.Equal(w.t, approvals, w.provider.Counts().Approvals)
	require.Equal(w.t, []string{"1"}, w.query(`SELECT COUNT(*) FROM grants`))
	w.provider.SetFaults(func(f *demo.Faults) { f.TokenDelay = 0 })
	before := w.provider.Counts().TokenOK["refresh_token"]
	w.provider.RevokeAccessTokens()
	require.Equal(w.t, "done", w.finished(w.api.start("assistant", "Once more.")).InvocationStatus)
	require.Equal(w.t, before+1, w.provider.Counts().TokenOK["refresh_token"], "the stored refresh token is the last that was issued")
}

// M1, P21, T12: twenty calls on two workers find one token that has ended: one refresh.
func TestOneRefreshOnTwoWorkers(t *testing.T) {
	t.Parallel()
	w, runs, start := refreshing(t)
	start()
	w.checkCalls(runs, 1)
	require.Equal(t, 2, w.provider.Counts().Token["refresh_token"], "one for twenty calls, one for the last")
	workers := map[string]bool{}
	for _, r := range runs {
		for _, found := range regexp.MustCompile(`"identity":\s*"(w[A-Z2-7]{6})"`).FindAllStringSubmatch(string(r.history()), -1) {
			workers[found[1]] = true
		}
	}
	require.Len(t, workers, 2, "both workers had their share")
}

// M1, M2: the worker that refreshes is killed, before its request left and after the provider has rotated. In the first
// case another worker refreshes; in the second it tries once with the token that it has, and when that is refused the
// person is asked, by one link, and no run fails.
func TestRefresherIsKilled(t *testing.T) {
	t.Parallel()
	for point, lost := range map[string]bool{"refresh.sending": false, "refresh.answered": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, runs, start := refreshing(t)
			w.hold(point)
			start()
			w.held(point)
			pid, err := os.ReadFile(filepath.Join(w.dir, "faults", point+".held"))
			require.NoError(t, err)
			victim := stack.Worker
			if string(pid) == strconv.Itoa(w.Pid(stack.SecondWorker)) {
				victim = stack.SecondWorker
			}
			require.Equal(t, string(pid), strconv.Itoa(w.Pid(victim)))
			require.NoError(t, w.Kill(victim))
			w.clear(point)
			approvals := 1
			if lost {
				approvals = 2
				links := map[string]bool{}
				for _, r := range runs {
					links[w.waiting(r)] = true
				}
				require.Len(t, links, 1)
				require.Equal(t, 2, w.provider.Counts().Token["refresh_token"], "one that was lost, and one retry")
				require.Equal(t, 1, w.provider.Counts().TokenOK["refresh_token"])
				for link := range links {
					w.login(link)
				}
			}
			w.checkCalls(runs, approvals)
			if !lost {
				require.Equal(t, 2, w.provider.Counts().Token["refresh_token"], "one for twenty calls, one for the last")
			}
		})
	}
}
