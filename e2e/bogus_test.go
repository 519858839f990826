package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// bogus sends callbacks that belong to no login, every after the last, until stop is called; stop returns how many there
// were and fails the test if one was answered by anything but a refusal.
func (w *world) bogus(every time.Duration) (stop func() int) {
	w.t.Helper()
	const senders = 8
	ctx, cancel := context.WithCancel(w.t.Context())
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: senders}}
	tick := time.NewTicker(every)
	digest := strings.Repeat("0123456789abcdef", 4)
	var group sync.WaitGroup
	var sent atomic.Int64
	var wrong sync.Map
	for range senders {
		group.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
				n := sent.Add(1)
				query := []string{
					fmt.Sprintf("%s?state=bogus%d&code=c", digest, n),
					fmt.Sprintf("%s?state=bogus%d&error=access_denied&error_description=<script>", digest, n),
					fmt.Sprintf("%x?state=bogus%d&code=c", n, n),
					"%2e%2e%2f?code=c", "?", digest + "?state=%zz&code=%00", digest + "?state=" + strings.Repeat("x", 4000) + "&code=c",
				}[n%7]
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL()+"/oauth/callback/"+query, http.NoBody)
				if err != nil {
					wrong.Store(err.Error(), query)
					return
				}
				if n%2 == 0 { // so that it is looked up
					req.AddCookie(&http.Cookie{Name: "tarry-login-0123456789abcdef", Value: "x"}) //nolint:gosec // a request's cookie has no attributes
				}
				resp, err := client.Do(req)
				if err != nil {
					if ctx.Err() == nil {
						wrong.Store(err.Error(), query)
					}
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode < 400 || resp.StatusCode >= 500 {
					wrong.Store(resp.Status, query)
				}
			}
		})
	}
	return func() int {
		w.t.Helper()
		cancel()
		group.Wait()
		tick.Stop()
		client.CloseIdleConnections()
		wrong.Range(func(what, query any) bool { w.t.Errorf("%v: %v", query, what); return true })
		return int(sent.Load())
	}
}

// A minute's worth of 10,000 bogus callbacks, more of them than that, while people log in: each is refused, all logins
// succeed, and every table holds what the logins put there and nothing else (pitfalls M18, M19).
func TestLoginsUnderBogusCallbacks(t *testing.T) {
	t.Parallel()
	const users = 10
	o := single(call("list_tickets") + text("ok"))
	o.faults = demo.Faults{AutoApprove: "alice"}
	w := newWorld(t, o)
	before := w.counts()
	stop := w.bogus(time.Minute / 20_000)
	var runs []runHandle
	for i := range users {
		runs = append(runs, w.api.startAs(fmt.Sprint("user", i), "assistant", map[string]string{"task": "Go."}))
	}
	for _, r := range runs {
		w.waiting(r)
	}
	w.together(w.begunBy(runs), 0)
	for _, r := range runs {
		require.Equal(t, "done", w.finished(r).InvocationStatus, r.user)
	}
	t.Logf("%d bogus callbacks meanwhile", stop())
	require.NotEqual(t, before, w.counts())
	w.eventually("messages are left over", func() bool { return w.query(`SELECT COUNT(*) FROM outbox WHERE done = 0`)[0] == "0" })
	checkLogins(t, w.Database(), w.provider, w.mcp, users, users)
}

// BenchmarkUnderBogusCallbacks measures what a person notices of 10,000 bogus callbacks a minute, and of as many as eight
// senders can bring: the answer of /healthz, of the connect page, and a whole run with its login.
func BenchmarkUnderBogusCallbacks(b *testing.B) {
	o := single(call("list_tickets") + text("ok"))
	o.faults = demo.Faults{AutoApprove: "alice"}
	w := newWorld(b, o)
	waits := w.api.startAs("ann", "assistant", map[string]string{"task": "Go."})
	link, user := w.waiting(waits), 0
	get := func(address string) {
		page, err := demo.NewBrowser().Open(b.Context(), address)
		require.NoError(b, err)
		require.Equal(b, http.StatusOK, page.Status)
	}
	for _, load := range []struct {
		name  string
		every time.Duration
	}{{"quiet", 0}, {"10000-a-minute", time.Minute / 10_000}, {"flat-out", time.Microsecond}} {
		for name, f := range map[string]func(){
			"healthz": func() { get(w.URL() + "/healthz") },
			"connect": func() { get(link) },
			"run": func() {
				user++
				r := w.api.startAs(fmt.Sprint("user", user), "assistant", map[string]string{"task": "Go."})
				w.login(w.waiting(r))
				require.Equal(b, "done", w.finished(r).InvocationStatus)
			},
		} {
			b.Run(name+"/"+load.name, func(b *testing.B) {
				if load.every > 0 {
					stop, began := w.bogus(load.every), time.Now()
					defer func() { b.ReportMetric(float64(stop())/time.Since(began).Minutes(), "bogus/min") }()
				}
				for b.Loop() {
					f()
				}
			})
		}
	}
}
