package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	temporal "go.temporal.io/sdk/client"

	"tarry/internal/demo"
	"tarry/internal/stack"
	"tarry/wire"
)

// Begin, completion, denial, cancellation and the deadline of one request, all at once and from several browsers: whoever
// wins, there is one outcome, one exchange at most, one answer, and the run goes on.
func TestOutcomesRace(t *testing.T) {
	t.Parallel()
	const deadline = 4 * time.Second
	o := single(call("whoami") + text("over"))
	o.agents["brief/root_agent.yaml"] = assistant("tarry: {credential_deadline: " + deadline.String() + "}\n")
	w := newWorld(t, o)
	type race struct {
		app, user         string
		grants, denies    bool
		cancels, presses  bool
		run               runHandle
		link, yes, no     string
		browser, opponent *demo.Browser
		expires           time.Time
	}
	var races []*race
	for i, r := range []race{
		{grants: true, denies: true},
		{grants: true, cancels: true},
		{denies: true, cancels: true},
		{grants: true, presses: true},
		{grants: true, denies: true, cancels: true, presses: true},
		{app: "brief", grants: true},
		{app: "brief", denies: true},
		{app: "brief", grants: true, denies: true, cancels: true},
		{app: "brief"},
	} {
		r.user = fmt.Sprint("user", i)
		if r.app == "" {
			r.app = "assistant"
		}
		races = append(races, &r)
	}
	var group sync.WaitGroup
	for _, r := range races {
		r.run = w.api.startAs(r.user, r.app, map[string]string{"task": "Go."})
		r.expires = time.Now().Add(deadline)
		r.link = w.waiting(r.run)
		r.browser, r.yes = w.toCallback(r.link)
		r.opponent, r.no = w.toCallback(r.link)
		r.no = with(t, r.no, func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") })
	}
	for _, r := range races {
		at := func(do bool, f func()) {
			if !do {
				return
			}
			group.Go(func() {
				if r.app == "brief" { // as near to the deadline as can be
					<-time.After(time.Until(r.expires))
				}
				f()
			})
		}
		for range 3 {
			at(r.grants, func() { _, _ = r.browser.Open(t.Context(), r.yes) })
			at(r.denies, func() { _, _ = r.opponent.Open(t.Context(), r.no) })
		}
		at(r.cancels, func() { w.api.call("POST", r.run.path("/cancel"), nil, nil) })
		at(r.presses, func() {
			b := demo.NewBrowser()
			if page, err := b.Open(t.Context(), r.link); err == nil {
				_, _ = b.Press(t.Context(), page, "connect")
			}
		})
	}
	group.Wait()
	for i, r := range races {
		what := fmt.Sprintf("race %d", i)
		s := w.finished(r.run)
		row := w.query(`SELECT id || ' ' || status FROM requests WHERE usr = ? ORDER BY seq`, r.user)
		require.Len(t, row, 1, what)
		var id, status string
		_, err := fmt.Sscan(row[0], &id, &status)
		require.NoError(t, err)
		require.Contains(t, []string{"granted", "denied", "expired", "cancelled"}, status, what)
		ended := w.query(`SELECT action FROM audit WHERE request = ? AND action IN ('granted', 'denied', 'expired', 'cancelled')`, id)
		require.Equal(t, []string{status}, ended, what)
		require.Empty(t, w.query(`SELECT status FROM flows WHERE request = ? AND status <> 'spent'`, id), what)
		require.Empty(t, w.query(`SELECT 'kept' FROM flows WHERE request = ? AND (code IS NOT NULL OR verifier IS NOT NULL)`, id), what)
		require.Len(t, w.query(`SELECT id FROM grants WHERE usr = ?`, r.user), map[bool]int{true: 1}[status == "granted"], what)
		if s.InvocationStatus == "done" {
			require.Equal(t, "over", s.Answer, what)
			require.Equal(t, status != "granted", s.Denied, what)
		} else {
			require.True(t, r.cancels, "%s: %s", what, s.InvocationStatus)
			require.Equal(t, "cancelled", s.InvocationStatus, what)
		}
		w.checkAnswers(r.run.events(), what)
		// Every page says the same from now on.
		for _, page := range []*demo.Page{w.visit(r.browser, r.yes), w.visit(r.opponent, r.no), w.visit(demo.NewBrowser(), r.link)} {
			require.Equal(t, status == "granted", slices.Contains([]string{"Connected", "Already connected"}, page.Title), "%s: %s, %s", what, status, page.Title)
		}
	}
	require.LessOrEqual(t, w.provider.Counts().TokenOK["authorization_code"], len(races))
	w.eventually("messages are left over", func() bool { return w.query(`SELECT COUNT(*) FROM outbox WHERE done = 0`)[0] == "0" })
}

// A signal that nobody of ours sent (unknown, repeated, another's, or a plain lie) grants nothing: the store's row is what
// counts, and the run goes on waiting.
func TestForgedSignals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, single(call("list_tickets")+text("ok")))
	a := w.api.startAs("ann", "assistant", map[string]string{"task": "Go."})
	b := w.api.startAs("ben", "assistant", map[string]string{"task": "Go."})
	link := w.waiting(a)
	w.waiting(b)
	mine, others := a.status().WaitingFor[0].Request, b.status().WaitingFor[0].Request
	workflow := w.query(`SELECT workflow_id FROM sessions WHERE id = ?`, a.id)[0]
	c, err := temporal.DialContext(t.Context(), temporal.Options{HostPort: w.Addr(stack.Temporal), Logger: silent{}})
	require.NoError(t, err)
	defer c.Close()
	for _, forged := range []wire.Resolved{
		{Request: "unknown", Outcome: wire.OutcomeGranted},
		{Request: others, Outcome: wire.OutcomeGranted},
		{Request: "", Outcome: wire.OutcomeDenied},
		{Request: mine, Outcome: wire.OutcomeGranted},
		{Request: mine, Outcome: wire.OutcomeGranted},
	} {
		require.NoError(t, c.SignalWorkflow(t.Context(), workflow, "", wire.SignalResolved, forged))
	}
	require.NoError(t, c.SignalWorkflow(t.Context(), workflow, "", wire.SignalMessage, wire.Message{Inbox: "unknown"}))
	w.eventually("the lie was not looked into", func() bool {
		return strings.Count(string(a.history()), `"tool/mcp/list_tickets"`) > 1 && a.status().State == "waiting_credential"
	})
	require.Empty(t, w.mcp.Calls(""))
	require.Equal(t, []string{"pending"}, w.query(`SELECT status FROM requests WHERE id = ?`, mine))
	require.Contains(t, w.login(link).Title, "Connected")
	require.Equal(t, "done", w.finished(a).InvocationStatus)
	require.Equal(t, "waiting_credential", b.status().State)
	require.Len(t, w.mcp.Calls("list_tickets"), 1)
	require.Equal(t, http.StatusAccepted, w.api.call("POST", b.path("/cancel"), nil, nil))
}

// silent drops what the Temporal SDK has to say.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
