package wire_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// These names stand in histories that are replayed years later. A failing line here is a broken replay there.
func TestPermanentNames(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		wire.WorkflowSession: "tarry.session",

		wire.ActivityTake: "tarry.take", wire.ActivityListTools: "tarry.list_tools", wire.ActivityCallModel: "tarry.call_model",
		wire.ActivityClose: "tarry.close", wire.ActivitySettle: "tarry.settle", wire.ActivityMirror: "tarry.mirror",
		wire.ActivityFinish: "tarry.finish", wire.ActivityRemind: "tarry.remind", wire.EndSuperseded: "superseded", wire.ActivityQueued: "tarry.queued", wire.ToolPrefix: "tool/",

		wire.SignalMessage: "tarry.message", wire.SignalResolved: "tarry.resolved", wire.SignalCancel: "tarry.cancel",
		wire.SignalContinueAsNew: "tarry.continue_as_new", wire.QueryStatus: "tarry.status",

		wire.ErrorRetry: "tarry.retry", wire.ErrorFinal: "tarry.final", wire.ErrorUnknownActivity: "tarry.unknown_activity",

		wire.AttributeApp: "TarryApp", wire.AttributeAgent: "TarryAgent", wire.AttributeStatus: "TarryStatus",

		wire.ToolsetBuiltin: "builtin", wire.ToolsetFunction: "function", wire.TaskQueue: "tarry",

		wire.RoleEvent: "event", wire.RoleRequest: "request", wire.RoleCall: "call", wire.RoleAnswer: "answer",

		string(wire.ModeJob): "job", string(wire.ModeChat): "chat",
		string(wire.StateRunning): "running", string(wire.StateWaitingCredential): "waiting_credential", string(wire.StateIdle): "idle",
		string(wire.StateWaitingInput): "waiting_input", string(wire.StateWaitingConfirmation): "waiting_confirmation",
		string(wire.OutcomeGranted): "granted", string(wire.OutcomeDenied): "denied", string(wire.OutcomeExpired): "expired",
		string(wire.OutcomeAnswered): "answered", string(wire.OutcomeCancelled): "cancelled",
		wire.ReasonFailed: "failed", wire.ReasonRefused: "refused", wire.EndDone: "done", wire.EndLimit: "limit",
	} {
		require.Equal(t, want, got)
	}
	require.Equal(t, "denied", wire.ReasonDenied)
	require.Equal(t, "expired", wire.ReasonExpired)
	require.Equal(t, "failed", wire.EndFailed)
	require.Equal(t, "cancelled", wire.EndCancelled)
}

func TestToolActivity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ toolset, name, want string }{
		{"mail", "send_message", "tool/mail/send_message"},
		{"function", "planner.create_issue", "tool/function/planner%2Ecreate_issue"},
		{"mail", "a%2Eb", "tool/mail/a%252Eb"},
		{"mail", "files/read", "tool/mail/files/read"},
		{"a/b", "c", "tool/a%2Fb/c"},
		{"a.b", "c", "tool/a%2Eb/c"},
		{"mail", "", "tool/mail/"},
		{"mail", strings.Repeat("x", 300), "tool/mail/" + strings.Repeat("x", 173) + "~v4gawa3ukvllv2xa"},
	} {
		got := wire.ToolActivity(tt.toolset, tt.name)
		require.Equal(t, tt.want, got)
		require.True(t, wire.IsToolActivity(got))
	}
	require.False(t, wire.IsToolActivity(wire.ActivityCallModel))
	require.False(t, wire.IsToolActivity("toolbox/x"))
}

func TestToolActivitiesDiffer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 400)
	cut := wire.ToolActivity("mail", long)
	names := []string{
		"a.b", "a%2Eb", "a%252Eb", "a/b", "ab", "a~b", "a%7Eb", long, long + "b", long[:399], strings.Repeat("ä", 200), strings.Repeat("ä", 201),
		"." + long, strings.TrimPrefix(cut, "tool/mail/"), strings.Repeat("%", 190), strings.Repeat(".", 190),
	}
	seen := map[string]string{}
	for _, toolset := range []string{"mail", "mail/a", "mail.a", "mai"} {
		for _, name := range names {
			got := wire.ToolActivity(toolset, name)
			require.LessOrEqual(t, len(got), 200)
			require.NotContains(t, got, ".", "replay compares only what follows the last dot")
			require.True(t, utf8.ValidString(got), "%q", got)
			other, taken := seen[got]
			require.False(t, taken, "%q is %s/%s and %s", got, toolset, name, other)
			seen[got] = toolset + "/" + name
		}
	}
}

// Ids are derived again by every retried attempt, also by another version of the worker: these values never change.
func TestDerivedIDs(t *testing.T) {
	t.Parallel()
	const run = "0192f0c4-7a1e-7c55-9d2f-0123456789ab"
	for _, tt := range []struct {
		run, activity string
		local         bool
		role          string
		event, call   string
	}{
		{run, "5", false, wire.RoleEvent, "21cdd681-7338-5a9e-a41a-3663c0c58dc3", "adk-6we6qboff3pd22cf"},
		{run, "5", true, wire.RoleEvent, "e4d84e69-305e-577e-a3f6-b006254adf53", "adk-44oqkeiiy4tf46yq"},
		{run, "5", false, wire.RoleRequest, "00e89c1b-2525-54e5-bd3b-965b2fc68743", "adk-ilpcnevg5g7dcqz4"},
		{run, "5", false, wire.RoleCall + "/0", "a4ccb2fd-f0a0-5bb5-97ab-0511630c87c9", "adk-uliks6ismapvoo6n"},
		{run, "5", false, wire.RoleCall + "/1", "24f0a559-7042-563f-8b5f-14385d8cfb15", "adk-vg4jghjny4lexefz"},
		{run, "51", false, wire.RoleAnswer + "/0", "24178faf-f461-5301-99aa-f3a931d7aa90", "adk-37noiafum5djpkil"},
		{"other", "5", false, wire.RoleEvent, "aa2e22c6-0823-5f7f-85d4-d7836315f6d6", "adk-kkq64s43ddg5qrar"},
		{"", "", false, "", "67724553-6421-51dc-a1c8-9c09ba4aca95", "adk-qwgmkgq6lbkoswom"},
	} {
		event, call := wire.EventID(tt.run, tt.activity, tt.local, tt.role), wire.CallID(tt.run, tt.activity, tt.local, tt.role)
		require.Regexp(t, `^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, event)
		require.Regexp(t, `^adk-[a-z2-7]{16}$`, call)
		require.Equal(t, tt.event, event)
		require.Equal(t, tt.call, call)
	}
}

func TestDerivedIDsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, run := range []string{"r", "r1"} {
		for _, activity := range []string{"1", "11", "1\x00"} {
			for _, local := range []bool{true, false} {
				for _, role := range []string{"event", "call/1", "call/11"} {
					id := wire.EventID(run, activity, local, role)
					require.False(t, seen[id])
					seen[id] = true
					require.Equal(t, id, wire.EventID(run, activity, local, role))
				}
			}
		}
	}
	require.Len(t, seen, 36)
}

func TestWorkflowID(t *testing.T) {
	t.Parallel()
	require.Equal(t, "tarry/planner/abcdef/s-1", wire.WorkflowID("planner", "abcdef", "s-1"))
}
