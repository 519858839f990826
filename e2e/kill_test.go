package e2e_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
	"tarry/replay"
)

// points are where a process can be held and killed, in the order in which a run meets them; each is reached before the
// login (during the request), in it, or after it.
var points = []struct {
	name string
	// by is the process that is held there.
	by stack.Name
	// during says that the point is reached by the callback.
	during bool
	// after says that it is reached after the login, with no further wait.
	after bool
	// again says that the login may be asked for a second time: the code was sent and the answer lost.
	again bool
	// models is how many more model calls the kill may cost: an answer that was not stored.
	models int
}{
	{name: "model.before", by: stack.Worker, models: 1},
	{name: "model.answered", by: stack.Worker, models: 1},
	{name: "model.stored", by: stack.Worker},
	{name: "ask.before", by: stack.Worker},
	{name: "ask.after", by: stack.Worker},
	{name: "callback.exchanging", by: stack.Server, during: true},
	{name: "callback.exchanged", by: stack.Server, during: true, again: true},
	{name: "callback.committed", by: stack.Server, during: true},
	{name: "tool.started", by: stack.Worker, after: true},
	{name: "tool.ran", by: stack.Worker, after: true},
	{name: "tool.stored", by: stack.Worker, after: true},
}

// chores is a job with a tool that may run twice (list_tickets) and one that may not (add_comment).
func chores() options {
	return single(call("list_tickets") + call("add_comment {ticket: REL-101, text: looked at}") + text("All done."))
}

// TestKillMatrix kills each process, and all, at each point.
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	for name, victims := range map[string][]stack.Name{
		"worker": {stack.Worker}, "server": {stack.Server}, "temporal": {stack.Temporal}, "all": stack.All(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, chores())
			for i := range points {
				w.killedRun(i, victims, fmt.Sprintf("user%d", i))
			}
		})
	}
}

// TestSeededKills runs jobs that are killed at points and with victims chosen by a seed. TARRY_SOAK sets how many,
// TARRY_SEED which.
func TestSeededKills(t *testing.T) {
	t.Parallel()
	n, seed := number(t, "TARRY_SOAK", 10), number(t, "TARRY_SEED", 1)
	t.Logf("%d runs with seed %d", n, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0)) //nolint:gosec // a test that can be repeated
	w := newWorld(t, chores())
	for i := range n {
		var victims []stack.Name
		for _, name := range stack.All() {
			if random.IntN(2) == 0 {
				victims = append(victims, name)
			}
		}
		point := random.IntN(len(points))
		t.Logf("run %d: %s, killing %v", i, points[point].name, victims)
		w.killedRun(point, victims, fmt.Sprintf("seeded%d", i))
	}
}

func number(t *testing.T, name string, fallback int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, name)
	return n
}

// killedRun runs one job whose victims are killed at a point, and checks all that must hold of it.
func (w *world) killedRun(point int, victims []stack.Name, user string) {
	w.t.Helper()
	p := points[point]
	modelsBefore, approvals, exchanges := len(w.modelCalls()), w.provider.Counts().Approvals, w.provider.Counts().TokenOK["authorization_code"]
	if !p.during && !p.after {
		w.hold(p.name)
	}
	r := w.api.startAs(user, "assistant", map[string]string{"task": "Do the chores."})
	if !p.during && !p.after {
		w.killAt(p.name, victims)
	}
	link := w.waiting(r)
	if p.during || p.after {
		w.hold(p.name)
	}
	if p.during {
		w.brokenLogin(link, p.name, victims)
	} else {
		w.login(link)
	}
	if p.after {
		w.killAt(p.name, victims)
	}
	if p.during {
		w.loginIfAsked(r)
	}
	s := w.finished(r)
	require.Equal(w.t, "done", s.InvocationStatus, p.name)
	require.Equal(w.t, "All done.", s.Answer, p.name)

	events := r.events()
	require.Len(w.t, asks(events), 1, "%s: the session asks once", p.name)
	w.checkAnswers(events, p.name)
	models := len(w.modelCalls()) - modelsBefore
	require.GreaterOrEqual(w.t, models, 3, p.name)
	require.LessOrEqual(w.t, models, 3+p.models, "%s: a stored answer was produced again", p.name)
	again := w.provider.Counts().Approvals - approvals
	if p.again {
		require.LessOrEqual(w.t, again, 2, p.name)
	} else {
		require.Equal(w.t, 1, again, "%s: logins", p.name)
		require.Equal(w.t, 1, w.provider.Counts().TokenOK["authorization_code"]-exchanges, "%s: codes exchanged", p.name)
	}
	w.checkKeys(user, events, p.name)
	_, err := replay.Reader(w.t.Context(), bytes.NewReader(r.history()))
	require.NoError(w.t, err, p.name)
}

// killAt waits until a process is held at the point, kills the victims, lets whoever was held and lives go on, and
// starts the victims again.
func (w *world) killAt(point string, victims []stack.Name) {
	w.t.Helper()
	w.held(point)
	require.NoError(w.t, w.Kill(victims...))
	w.write("faults/"+point+".go", "")
	require.NoError(w.t, w.Start(w.t.Context(), victims...))
	w.clear(point)
}

func (w *world) clear(point string) {
	for _, suffix := range []string{".hold", ".held", ".go"} {
		_ = os.Remove(w.dir + "/faults/" + point + suffix)
	}
}

// brokenLogin logs in while the server is held in the middle of the callback, and kills there.
func (w *world) brokenLogin(link, point string, victims []stack.Name) {
	w.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = w.tryLogin(link) // the browser may find nobody there
	}()
	w.killAt(point, victims)
	<-done
}

// loginIfAsked logs in once more if the same link still asks, which it does only when an answer was lost.
func (w *world) loginIfAsked(r runHandle) {
	w.t.Helper()
	var s runStatus
	w.eventually("the login is neither done nor asked for again", func() bool {
		s = r.status()
		if s.State == "waiting_credential" && len(s.WaitingFor) == 1 {
			page, err := w.open(s.WaitingFor[0].Link)
			return err == nil && strings.HasPrefix(page.Title, "Connect to") && w.untried(s.WaitingFor[0].Request)
		}
		return s.InvocationStatus == "done" || s.State == "running" || s.State == "done"
	})
	if s.State == "waiting_credential" {
		w.login(s.WaitingFor[0].Link)
	}
}
