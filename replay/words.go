package replay

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"tarry/wire"
)

// What is likely behind a difference, and what mends it.
const (
	reasonOther = "Likely the order or the choice of steps was changed: runs that are under way need the old one, behind " +
		"workflow.GetVersion with a change id. A history whose start input (event 1) was changed looks so too"
	reasonMissing = "Likely a step was taken out of the workflow: runs that are under way still need it, behind " +
		"workflow.GetVersion with a change id. A history whose start input (event 1) was changed looks so too"
	reasonExtra = "Likely a step was added to the workflow: it needs workflow.GetVersion with a change id, so that runs which " +
		"are under way go on without it. A history whose start input (event 1) was changed looks so too"
	reasonInput = "Likely the workflow now works out another input: put the change behind workflow.GetVersion with a change " +
		"id, or the step would be done differently in one run"
	reasonVersion = "The code no longer has, or does not have yet, the version of a change that the run was begun with: keep every " +
		"version in workflow.GetVersion until no such run is left"
	reasonStart = "The plan in the start input (event 1) has no agent %s: it was changed, or belongs to another session"
	reasonPlan  = "The history is of a newer version, or its start input was changed: deploy no version that is older than the runs"
)

// verb is what a step does, as what a run did and as what the code would do.
type verb struct{ did, would string }

func (s step) did() string   { return s.verb().did }
func (s step) would() string { return s.verb().would }

func (s step) verb() verb {
	switch s.kind {
	case kindTimer:
		return verb{"set a timer of " + s.wait.String(), "set a timer of " + s.wait.String()}
	case kindStatus:
		return verb{"wrote its status to the search attributes", "write its status to the search attributes"}
	case kindEnd:
		return s.ending()
	case kindActivity, kindLocal:
	}
	return s.activity()
}

func (s step) ending() verb {
	switch s.name {
	case endContinued:
		return verb{"continued as new", "continue as new"}
	case endCancelled:
		return verb{"ended as cancelled", "end as cancelled"}
	case endFailed:
		return verb{"failed", "fail"}
	default:
		return verb{"ended", "end"}
	}
}

func (s step) activity() verb {
	var in struct{ Agent, Toolset, Tool, Reason, State, End string }
	if err := json.Unmarshal(s.input, &in); err != nil {
		in.Agent = "" // a description says less then
	}
	switch {
	case wire.IsToolActivity(s.name):
		tool := toolName(s.name)
		return verb{"called tool " + tool, "call tool " + tool}
	case s.name == wire.ActivityTake:
		return verb{"took the next message", "take the next message"}
	case s.name == wire.ActivityListTools:
		of := in.Toolset + suffix(" for agent ", in.Agent)
		return verb{"listed the tools of " + of, "list the tools of " + of}
	case s.name == wire.ActivityCallModel:
		of := suffix(" of agent ", in.Agent)
		return verb{"called the model" + of, "call the model" + of}
	case s.name == wire.ActivityCallback:
		of := suffix(" of agent ", in.Agent)
		return verb{"ran the callbacks" + of, "run the callbacks" + of}
	case s.name == wire.ActivityClose:
		return verb{"closed a request at its deadline", "close a request at its deadline"}
	case s.name == wire.ActivitySettle:
		why := suffix(" as ", in.Reason)
		return verb{"answered a call without running it" + why, "answer a call without running it" + why}
	case s.name == wire.ActivityMirror:
		what := suffix(" as ", in.State)
		return verb{"wrote to the store that it waits" + what, "write to the store that it waits" + what}
	case s.name == wire.ActivityFinish:
		how := suffix(" as ", in.End)
		return verb{"ended the invocation" + how, "end the invocation" + how}
	case s.name == wire.ActivityEmit:
		return verb{"appended an event" + suffix(" of agent ", in.Agent), "append an event" + suffix(" of agent ", in.Agent)}
	case s.name == wire.ActivityOpen:
		return verb{"began a custom agent's call of a tool", "begin a custom agent's call of tool " + in.Tool}
	case s.name == wire.ActivityRead:
		return verb{"read the session for a custom agent", "read the session for a custom agent"}
	case s.name == wire.ActivityReturn:
		return verb{"answered the call of an agent", "answer the call of an agent"}
	case s.name == wire.ActivityGuard:
		return verb{"ran the callbacks before the call of an agent", "run the callbacks before the call of an agent"}
	case s.name == wire.ActivityKeep, s.name == wire.ActivityKept:
		return verb{"kept a custom agent's journal in the store", "keep a custom agent's journal in the store"}
	case s.name == wire.ActivityQueued:
		return verb{"looked for a new message", "look for a new message"}
	case s.name == wire.ActivityRemind:
		return verb{"reminded the person of a request", "remind the person of a request"}
	default:
		return verb{"ran activity " + s.name, "run activity " + s.name}
	}
}

// agent is the one that an activity is for; empty if its input names none.
func (s step) agent() string {
	var in struct{ Agent string }
	if json.Unmarshal(s.input, &in) != nil {
		return ""
	}
	return in.Agent
}

func suffix(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// toolName is toolset and name as a person knows them.
func toolName(activity string) string {
	return strings.NewReplacer("%2E", ".", "%2F", "/", "%7E", "~", "%25", "%").Replace(strings.TrimPrefix(activity, wire.ToolPrefix))
}

// fields names the fields of two inputs that differ, and says what they hold.
// named says that the descriptions of the steps differ, which name agent and toolset.
func fields(then, now []byte, named bool) (names []string, was, is string) {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(then, &a) != nil || json.Unmarshal(now, &b) != nil {
		return nil, " with " + short(then), " with " + short(now)
	}
	all := maps.Clone(a)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	maps.Copy(all, b)
	var left, right []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if string(a[name]) == string(b[name]) {
			continue
		}
		names = append(names, name)
		if named && (name == "agent" || name == "toolset") {
			continue
		}
		left, right = append(left, holds(name, a)), append(right, holds(name, b))
	}
	if len(names) == 0 {
		return nil, " with " + short(then), " with " + short(now)
	}
	if len(left) == 0 {
		return names, "", ""
	}
	return names, " with " + strings.Join(left, " and "), " with " + strings.Join(right, " and ")
}

func holds(name string, in map[string]json.RawMessage) string {
	value, ok := in[name]
	if !ok {
		return "no " + name
	}
	return name + " " + short(value)
}

const shown = 120

func short(value []byte) string { return cut(string(value), shown) }

// cut shortens a text to about n bytes.
func cut(text string, n int) string {
	if len(text) > n {
		return strings.ToValidUTF8(text[:n], "") + "…"
	}
	return text
}
