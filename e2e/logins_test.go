package e2e_test

import (
	"context"
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
// (I5; pitfalls T15, M21). TARRY_LOGINS sets how many; TestThousandLoginsInOneProcess does the bulk.
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
	w.eventually("messages are left over", func() bool { return w.query(`SELECT COUNT(*) FROM outbox WHERE done = 0`)[0] == "0" })
	checkLogins(t, w.Database(), w.provider, w.mcp, total, total)
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

// checkLogins: as many logins were each asked, begun, granted and exchanged once as there should be, each run used one and
// called its tool once, and nothing is left over.
func checkLogins(t *testing.T, file string, provider *demo.Provider, server *demo.MCPServer, logins, runs int) {
	t.Helper()
	is := func(n int, of string) {
		t.Helper()
		require.Equal(t, strconv.Itoa(n), query(t, file, `SELECT COUNT(*) FROM `+of)[0], of)
	}
	is(logins, `grants`)
	is(0, `requests WHERE status <> 'granted'`)
	is(0, `flows WHERE status <> 'spent' OR code IS NOT NULL OR verifier IS NOT NULL OR nonce IS NOT NULL`)
	is(runs, `invocations`)
	is(runs, `invocations WHERE status = 'done'`)
	is(0, `outbox WHERE done = 0`)
	is(logins, `audit WHERE action = 'opened'`)
	is(runs, `audit WHERE action = 'used'`)
	for _, action := range []string{"asked", "granted"} {
		is(0, `requests r WHERE 1 <> (SELECT COUNT(*) FROM audit a WHERE a.request = r.id AND a.action = '`+action+`')`)
	}
	is(0, `audit WHERE action NOT IN ('asked', 'opened', 'granted', 'used')`)
	require.Equal(t, logins, provider.Counts().TokenOK["authorization_code"])
	require.Equal(t, logins, provider.Counts().Token["authorization_code"])
	require.Len(t, server.Calls("list_tickets"), runs)
}

// TestThousandLoginsInOneProcess has 1,000 runs (a quarter of that under the race detector, which SQLite in Go makes slow;
// TARRY_LOGINS says otherwise) in the SDK's test environment, around the real store, login service and
// outbox, with callbacks that land before the run hears of its request, while it hears of it, when it has said that it
// waits, and in pairs of runs of one person, when the second is about to ask: every run ends, each once (I5; pitfalls T15,
// M21, M38). The real processes do fewer: TestLoginsAroundTheWait.
func TestThousandLoginsInOneProcess(t *testing.T) {
	t.Parallel()
	runs := 1000
	if raceDetector {
		runs = 250
	}
	runs = number(t, "TARRY_LOGINS", runs)
	pairs := runs / 12
	before, during := (runs-2*pairs)/3, (runs-2*pairs)/3
	after := runs - 2*pairs - before - during
	p := newOneProcess(t)
	var group sync.WaitGroup // logins under way
	broken := make(chan error, 2*(before+during+after+2*pairs))
	login := func(user string) {
		if err := p.login(user); err != nil {
			broken <- err
		}
	}
	asked := map[string]chan struct{}{} // of the first of each pair
	for i := range pairs {
		asked[fmt.Sprint("pair-", i)] = make(chan struct{})
	}
	p.at = func(_ context.Context, workflowID, point string) {
		when, user, _ := strings.Cut(workflowID, "/")
		switch when + " " + point {
		case "before ask.after":
			login(user)
		case "during ask.after", "after waits":
			group.Go(func() { login(user) })
		case "first ask.after":
			close(asked[user])
		case "second ask.before":
			<-asked[user]
			group.Go(func() { login(user) })
		}
	}
	var jobs []func() error
	job := func(when, user string) {
		jobs = append(jobs, func() error {
			status, err := p.run(user, when+"/"+user)
			if err == nil && status != "done" {
				err = fmt.Errorf("run %s/%s: %s", when, user, status)
			}
			return err
		})
	}
	for when, n := range map[string]int{"before": before, "during": during, "after": after} {
		for i := range n {
			job(when, fmt.Sprint(when, "-", i))
		}
	}
	rand.Shuffle(len(jobs), func(i, j int) { jobs[i], jobs[j] = jobs[j], jobs[i] }) //nolint:gosec // order, not secrets
	for user := range asked {
		job("first", user)
		job("second", user)
	}
	began := time.Now()
	queue := make(chan func() error)
	var workers sync.WaitGroup
	for range 24 {
		workers.Go(func() {
			for f := range queue {
				if err := f(); err != nil {
					broken <- err
				}
			}
		})
	}
	for _, f := range jobs {
		queue <- f
	}
	close(queue)
	workers.Wait()
	group.Wait()
	close(broken)
	for err := range broken {
		t.Error(err)
	}
	t.Logf("%d runs in %s", len(jobs), time.Since(began).Round(time.Second))
	require.Len(t, jobs, runs)
	if !t.Failed() {
		checkLogins(t, p.database, p.provider, p.mcp, before+during+after+pairs, len(jobs))
	}
}
