package e2e_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// P30: a denial and a deadline are outcomes that a client of ADK hears of: the tool has an error, the model is told, the run
// ends. A code that comes later is exchanged for nothing and changes nothing.
func TestADKLoginsThatFail(t *testing.T) {
	t.Parallel()
	o := single(call("list_tickets") + text("No login: {{response.list_tickets.error}}"))
	o.agents["brief/root_agent.yaml"] = assistant("tarry: {credential_deadline: 3s}\n")
	o.env = append(o.env, "TARRY_RETURN_URLS="+popupBack)
	w := newWorld(t, o)
	for name, c := range map[string]struct{ app, says string }{"denied": {"assistant", "did not allow"}, "too late": {"brief", "deadline"}} {
		s := w.adkSessionOf(c.app, strings.ReplaceAll(name, " ", "-"))
		events := s.say("Which tickets?")
		f := s.requested(events)[0]
		late, callback := w.toCallback(f.link()) // begun before, and finished after
		late.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), popupBack) }
		address := popupBack
		if name == "denied" {
			b := demo.NewBrowser()
			b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), popupBack) }
			page, err := b.Deny(t.Context(), f.link(), "alice", "alice-password")
			require.NoError(t, err)
			address = page.URL.String()
			require.True(t, strings.HasPrefix(address, popupBack+"?"), "a denial comes back like a login: %s", page.Text)
		} else {
			w.finished(s.runHandle)
		}
		body := s.body(nil, answering(f, f.filled(address)))
		status, got := s.c.sse(body, false)
		require.Equal(t, http.StatusOK, status, name)
		require.Len(t, got, 2, name)
		require.Contains(t, responses(got, "list_tickets")[0].Response["error"], c.says)
		require.Contains(t, got[1].Content.Parts[0].Text, "No login: ")
		require.Contains(t, got[1].Content.Parts[0].Text, c.says)
		require.Equal(t, "done", w.finished(s.runHandle).InvocationStatus, name)

		require.NotContains(t, w.visit(late, callback).Title, "Connected", name)
		_, repeat := s.c.sse(body, false)
		require.Equal(t, ids(t, got), ids(t, repeat), name)
		require.Len(t, s.events(), 5, name)
	}
	require.Empty(t, w.provider.Counts().Token)
	require.Empty(t, w.mcp.Calls("list_tickets"))
}

// P3: an approval finds the run that waits by session and id: with its invocation id, with the event's id only, and with neither.
// The next agent follows in the same invocation.
func TestADKApprovalsFindTheirRun(t *testing.T) {
	t.Parallel()
	free := newFreeServer(t)
	w := newWorld(t, guarded(free, call("note {text: hello}")+text("first is done")))
	for name, more := range map[string]func(last event) map[string]any{
		"neither":        func(event) map[string]any { return nil },
		"the invocation": func(e event) map[string]any { return map[string]any{"invocationId": e.InvocationID} },
		"the event":      func(e event) map[string]any { return map[string]any{"functionCallEventId": e.ID} },
		"both, snake case": func(e event) map[string]any {
			return map[string]any{"invocation_id": e.InvocationID, "function_call_event_id": e.ID}
		},
	} {
		before := free.calls.Load()
		s := w.adkSession(strings.NewReplacer(" ", "-", ",", "").Replace(name))
		events := s.say("Take a note.")
		last := events[len(events)-1]
		f := last.Content.Parts[0].FunctionCall
		require.Equal(t, "adk_request_confirmation", f.Name)
		status, got := s.c.sse(s.body(more(last), answering(loginCall{f, t}, map[string]any{"confirmed": true})), false)
		require.Equal(t, http.StatusOK, status, name)
		ids(t, got)
		require.Equal(t, "first", responsesBy(got, "note"), name)
		end := got[len(got)-1]
		require.Equal(t, "second", end.Author, "%s: the next agent runs", name)
		require.Equal(t, "second is done", end.Content.Parts[0].Text)
		require.Equal(t, last.InvocationID, end.InvocationID, name)
		require.Equal(t, before+1, free.calls.Load(), name)
		w.checkAnswers(s.events(), name)
	}
}
