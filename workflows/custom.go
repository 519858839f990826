package workflows

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/workflow"

	"tarry/agent"
	"tarry/wire"
)

// Agents are custom agents by the names they are registered under: the functions of definitions' CustomAgents. It must not
// change once a worker or a replayer has it; nil holds none.
type Agents map[string]AgentFunc

// Names lists the registered names, sorted.
func (a Agents) Names() []string { return workflow.DeterministicKeys(a) }

// AgentFunc is a custom agent: the counterpart of ADK's _run_async_impl. It decides in plain Go what runs when, by the methods
// of [Agent], and needs no code to survive a crash, a deploy or a wait of weeks: it is workflow code, and where a run continues
// as another it is called from the top again, and the steps that were finished return at once what they returned before.
//
// So it must do the same whenever it is called with the same answers: no clock but [Agent.Now], no random numbers, no
// goroutines, no I/O, no iteration over maps, no variables that outlive a call. Work of that kind is a tool, by [Agent.Call].
// A change of the function while runs of it are under way needs [Agent.Version], and package replay finds one that has none.
//
// An error that a method returned must be returned in turn, unless it is a [*ToolError]; it is the run's way to stop here. An
// error of the function's own ends the invocation as failed. A panic does not: Temporal tries again until a worker has code
// that does not panic.
type AgentFunc func(a *Agent) error

// Agent is what a custom agent works with: one run of it, from when its turn comes to when the function returns. It belongs
// to the function's goroutine and must not be kept.
type Agent struct {
	s    *session
	ctx  workflow.Context //nolint:containedctx // workflow code has one context for a coroutine, and users get none
	t    *thread
	node agent.Node
	f    *wire.Frame

	at  int   // steps that were passed
	err error // ends everything
}

// Name is the agent's.
func (a *Agent) Name() string { return a.node.Name }

// Children are the names of its sub-agents, in order.
func (a *Agent) Children() []string {
	var out []string
	for _, child := range a.node.Children {
		out = append(out, child.Name)
	}
	return out
}

// Logger logs what is not replayed.
func (a *Agent) Logger() log.Logger { return workflow.GetLogger(a.ctx) }

// Version returns the version of a change with which this run passed here first: maxSupported for a run that comes here for
// the first time, so that new runs take the new code and old ones the old (workflow.GetVersion of Temporal's SDK). minSupported
// is -1 as long as runs of the time before the change may be under way.
func (a *Agent) Version(change string, minSupported, maxSupported int) int {
	version := maxSupported
	if a.err == nil && a.passed(versionOp+change) {
		if version = int(workflow.DefaultVersion); version < minSupported {
			block("a run of custom agent %s is older than change %q, and the function supports it from version %d on", a.node.Name, change, minSupported)
		}
		return version
	}
	_ = a.step(versionOp+change, &version, func() (any, error) { // what ends the run, the next step returns
		return workflow.GetVersion(a.ctx, a.node.Custom+"/"+change, workflow.Version(minSupported), workflow.Version(maxSupported)), nil
	})
	return version
}

// runCustom calls the function of a CustomAgent.
func (s *session) runCustom(ctx workflow.Context, t *thread, n agent.Node, f *wire.Frame) (escalate bool, err error) {
	run, ok := s.custom[n.Custom]
	if !ok {
		block("custom agent %s is not registered with this worker; there are %v", n.Custom, s.custom.Names())
	}
	if err := keptJournal(ctx, f); err != nil {
		return false, err
	}
	s.agent = n.Name
	a := &Agent{s: s, ctx: ctx, t: t, node: n, f: f}
	err = run(a)
	switch {
	case a.err != nil: // also where the function has dropped it
		return false, a.err
	case err != nil:
		s.log.Error("custom agent failed", "agent", n.Name, "err", loggable(err))
		return false, &endError{wire.EndFailed}
	}
	f.Journal = nil
	return f.Escalate, nil
}

// loggable is an error of a function without what a tool has answered: that may repeat what a person did.
func loggable(err error) string {
	text := err.Error()
	if e := (*ToolError)(nil); errors.As(err, &e) && e.Message != "" {
		text = strings.ReplaceAll(text, e.Message, "its message stands in the session")
	}
	return text
}

// block stops the run until another worker has code that fits: Temporal fails the task of a panic, and tries again. An error
// would end the session.
func block(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}
