package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// holdAll makes everybody who reaches point stay there until letGo.
func (w *world) holdAll(point string) { w.write("faults/"+point+".all", "") }

func (w *world) letGo(point string) {
	w.t.Helper()
	require.NoError(w.t, os.Remove(filepath.Join(w.dir, "faults", point+".all")))
}

// TestLoginsAroundTheWait starts runs of many people in the real processes and lets their callbacks land before the run
// knows of its request, while it is told, and after it waits: no login is lost, none counts twice, nothing is left over
// (I5; pitfalls T15, M21). TARRY_LOGINS sets how many logins; TestThousandLoginsInOneProcess does the bulk.
func TestLoginsAroundTheWait(t *testing.T) {
	t.Parallel()
	const wave, told = 20, "ask.after" // the request is stored, the run has not heard of it
	n := number(t, "TARRY_LOGINS", 3*wave)
	o := single(call("list_tickets") + text("ok"))
	o.faults = demo.Faults{AutoApprove: "alice"}
	w := newWorld(t, o)
	began := time.Now()
	for done := 0; done < n; {
		for when, land := range map[string]func([]runHandle, []func() error){
			"before": func(_ []runHandle, callbacks []func() error) {
				w.together(callbacks, 0)
				w.letGo(told)
			},
			"during": func(_ []runHandle, callbacks []func() error) {
				w.letGo(told)
				w.together(callbacks, 60*time.Millisecond)
			},
			"after": func(runs []runHandle, callbacks []func() error) {
				w.letGo(told)
				for _, r := range runs {
					w.eventually("the run does not wait", func() bool { return r.status().State == "waiting_credential" })
				}
				w.together(callbacks, 0)
			},
		} {
			w.holdAll(told)
			var runs []runHandle
			for range wave {
				runs = append(runs, w.api.startAs(fmt.Sprint("user", done), "assistant", map[string]string{"task": "Go."}))
				done++
			}
			w.eventually("not everybody asks", func() bool {
				return w.query(`SELECT COUNT(*) FROM requests WHERE status = 'pending'`)[0] == strconv.Itoa(wave)
			})
			land(runs, w.begunBy(runs))
			for _, r := range runs {
				require.Equal(t, "done", w.finished(r).InvocationStatus, "%s: %s has lost its login", when, r.user)
				require.Len(t, asks(r.events()), 1, "%s: %s", when, r.user)
			}
		}
	}
	total := len(w.query(`SELECT id FROM requests`))
	t.Logf("%d logins in %s", total, time.Since(began).Round(time.Second))
	require.GreaterOrEqual(t, total, n)
	w.checkLogins(total)
}

// begunBy begins the login of each run, as far as the redirect to our callback, and returns what opens those callbacks.
func (w *world) begunBy(runs []runHandle) []func() error {
	w.t.Helper()
	callbacks := make([]func() error, len(runs))
	begin := make([]func() error, len(runs))
	for i, r := range runs {
		s := r.status()
		require.Len(w.t, s.WaitingFor, 1, r.user)
		begin[i] = func() error {
			b := demo.NewBrowser()
			b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.Path, "/oauth/callback/") }
			page, err := b.Login(w.t.Context(), s.WaitingFor[0].Link, "alice", "alice-password")
			if err != nil {
				return err
			}
			b.StopAt = nil
			callbacks[i] = func() error {
				page, err := b.Open(w.t.Context(), page.URL.String())
				if err == nil && page.Title != "Connected" {
					err = fmt.Errorf("the page says %q", page.Title)
				}
				return err
			}
			return nil
		}
	}
	w.together(begin, 0)
	return callbacks
}

// together does all at once, each after up to spread.
func (w *world) together(all []func() error, spread time.Duration) {
	w.t.Helper()
	errs := make(chan error, len(all))
	var group sync.WaitGroup
	for _, f := range all {
		wait := time.Duration(rand.Int64N(int64(spread) + 1)) //nolint:gosec // when, not what
		group.Go(func() {
			<-time.After(wait)
			if err := f(); err != nil {
				errs <- err
			}
		})
	}
	group.Wait()
	close(errs)
	for err := range errs {
		require.NoError(w.t, err)
	}
}

// checkLogins: n requests were each asked, begun, granted and used once, and nothing of them is left over.
func (w *world) checkLogins(n int) {
	w.t.Helper()
	count := func(query string) string { return w.query(`SELECT COUNT(*) FROM ` + query)[0] }
	all := strconv.Itoa(n)
	require.Equal(w.t, all, count(`requests WHERE status = 'granted'`))
	require.Equal(w.t, "0", count(`requests WHERE status <> 'granted'`))
	require.Equal(w.t, all, count(`grants`))
	require.Equal(w.t, "0", count(`flows WHERE status <> 'spent' OR code IS NOT NULL OR verifier IS NOT NULL OR nonce IS NOT NULL`))
	require.Equal(w.t, all, count(`invocations WHERE status = 'done'`))
	w.eventually("messages are left over", func() bool { return count(`outbox WHERE done = 0`) == "0" })
	for _, action := range []string{"asked", "opened", "granted", "used"} {
		require.Equal(w.t, all, count(`audit WHERE action = '`+action+`'`), action)
		require.Equal(w.t, "0", count(`(SELECT request FROM audit WHERE action = '`+action+`' AND request <> '' GROUP BY request HAVING COUNT(*) > 1)`), action)
	}
	require.Equal(w.t, "0", count(`audit WHERE action NOT IN ('asked', 'opened', 'granted', 'used')`))
	require.Equal(w.t, n, w.provider.Counts().TokenOK["authorization_code"])
	require.Equal(w.t, n, w.provider.Counts().Token["authorization_code"])
	require.Len(w.t, w.mcp.Calls("list_tickets"), n)
}
