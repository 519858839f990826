package agent

import "time"

// minRemind keeps a wait from filling a history with its reminders.
const minRemind = time.Second

func (v *validator) policy(a *Agent, depth int) {
	v.wait(a)
	if depth > 0 {
		if a.OnMessage != "" {
			v.add(a, "on_message", "only the root agent has it; move it there")
		}
		if a.Limits != (Limits{}) {
			v.add(a, "limits", "only the root agent has them, since they bound the whole tree; move them there")
		}
		return
	}
	switch a.OnMessage {
	case "", MessageQueue, MessageInterrupt:
	default:
		v.add(a, "on_message", "%q is neither %q nor %q", a.OnMessage, MessageQueue, MessageInterrupt)
	}
	v.limits(a)
}

func (v *validator) wait(a *Agent) {
	w := a.Wait
	switch {
	case w.Deadline < 0:
		v.add(a, "deadline", "%s is negative; use 0 for no deadline", w.Deadline)
	case w.Remind != 0 && w.Remind < minRemind:
		v.add(a, "remind", "%s is less than %s; use a longer time, or 0 for no reminders", w.Remind, minRemind)
	case w.Deadline > 0 && w.Remind >= w.Deadline:
		v.add(a, "remind", "%s is not shorter than the deadline of %s, so nobody would be reminded; use a shorter time", w.Remind, w.Deadline)
	}
	switch w.OnDeadline {
	case "", DeadlineDeny:
	case DeadlineFail:
		if w.Deadline == 0 {
			v.add(a, "on_deadline", "%q has no effect without a deadline; set one", w.OnDeadline)
		}
	default:
		v.add(a, "on_deadline", "%q is neither %q nor %q", w.OnDeadline, DeadlineDeny, DeadlineFail)
	}
}

func (v *validator) limits(a *Agent) {
	l := a.Limits
	for _, f := range []struct {
		name  string
		value int
	}{
		{"model_calls", l.ModelCalls}, {"tokens", l.Tokens}, {"session.model_calls", l.Session.ModelCalls}, {"session.tokens", l.Session.Tokens},
	} {
		if f.value < 0 {
			v.add(a, "limits."+f.name, "%d is negative; leave it out for no limit of this kind", f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value time.Duration
	}{
		{"duration", l.Duration}, {"session.duration", l.Session.Duration},
	} {
		if f.value < 0 {
			v.add(a, "limits."+f.name, "%s is negative; leave it out for no limit of this kind", f.value)
		}
	}
}
