package wire

import "strings"

// TaskQueue is the default task queue of workers.
const TaskQueue = "tarry"

// Permanent names.
const (
	// WorkflowSession is one session: a chat, or a job of one invocation.
	WorkflowSession = "tarry.session"

	// ActivityTake takes the next message of the inbox and appends it to the log.
	ActivityTake = "tarry.take"
	// ActivityListTools lists one toolset.
	ActivityListTools = "tarry.list_tools"
	// ActivityCallModel makes one model call.
	ActivityCallModel = "tarry.call_model"
	// ActivityCallback runs the callbacks around an agent.
	ActivityCallback = "tarry.agent_callback"
	// ActivityGuard runs the callbacks before the call of an agent.
	ActivityGuard = "tarry.guard"
	// ActivityEmit (local) stores what a custom agent says.
	ActivityEmit = "tarry.emit"
	// ActivityOpen (local) makes a tool call on behalf of a custom agent.
	ActivityOpen = "tarry.open"
	// ActivityRead (local) reads state, or the response of a call, for a custom agent.
	ActivityRead = "tarry.read"
	// ActivityKeep (local) stores what is too long to be carried from run to run, ActivityKept (local) reads it again.
	ActivityKeep = "tarry.keep"
	ActivityKept = "tarry.kept"
	// ActivityReturn (local, but for callers with callbacks after tools) answers the call of an agent that has run.
	ActivityReturn = "tarry.return"
	// ActivityClose closes a request at its deadline.
	ActivityClose = "tarry.close"
	// ActivitySettle (local) answers a call that will not run again: denied, expired, failed, cancelled.
	ActivitySettle = "tarry.settle"
	// ActivityMirror (local) writes the run's status to the store.
	ActivityMirror = "tarry.mirror"
	// ActivityRemind (local) tells clients that a request is still open.
	ActivityRemind = "tarry.remind"
	// ActivityQueued (local) says whether a message waits to interrupt an invocation.
	ActivityQueued = "tarry.queued"
	// ActivityFinish (local) ends an invocation.
	ActivityFinish = "tarry.finish"
	// ToolPrefix begins the activity type of every tool call: tool/<toolset>/<name>.
	ToolPrefix = "tool/"

	// SignalMessage says that the inbox holds something.
	SignalMessage = "tarry.message"
	// SignalResolved carries the outcome of a request.
	SignalResolved = "tarry.resolved"
	// SignalCancel cancels an invocation, the session or one call.
	SignalCancel = "tarry.cancel"
	// SignalContinueAsNew asks for a new run at the next turn boundary.
	SignalContinueAsNew = "tarry.continue_as_new"

	// QueryStatus answers a [Status].
	QueryStatus = "tarry.status"
)

// Types of application errors, as they stand in histories.
const (
	// ErrorRetry is a failure that another attempt may mend.
	ErrorRetry = "tarry.retry"
	// ErrorFinal is a failure that no attempt mends.
	ErrorFinal = "tarry.final"
	// ErrorUnknownActivity is the dynamic activity's refusal of a name that this worker does not know.
	ErrorUnknownActivity = "tarry.unknown_activity"
)

// Search attributes; nothing personal, since they are not encrypted.
const (
	AttributeApp    = "TarryApp"
	AttributeAgent  = "TarryAgent"
	AttributeStatus = "TarryStatus"
)

// Toolsets of tools that need no listing.
const (
	ToolsetBuiltin  = "builtin"
	ToolsetFunction = "function"
	// ToolsetAgent is that of agents that serve as tools; no definition can name a toolset so.
	ToolsetAgent = "@agent"
)

const maxToolType = 200

// ToolActivity is the activity type of a call: at most 200 bytes, different for different tools. Dots are escaped, because
// the SDK compares only what follows the last dot when it replays, and would not notice that another tool runs.
func ToolActivity(toolset, name string) string {
	t := ToolPrefix + escape(toolset, "/", "%2F") + "/" + escape(name)
	if len(t) > maxToolType {
		digest := short(t)
		t = strings.ToValidUTF8(t[:maxToolType-len(digest)-1], "") + "~" + digest // Temporal takes no half letter
	}
	return t
}

// escape keeps apart what escaping would make equal: the sign of an escape is escaped too, and the one of a cut.
func escape(s string, more ...string) string {
	return strings.NewReplacer(append([]string{"%", "%25", ".", "%2E", "~", "%7E"}, more...)...).Replace(s)
}

// IsToolActivity says whether an activity type is a tool call's.
func IsToolActivity(activityType string) bool {
	return strings.HasPrefix(activityType, ToolPrefix)
}
