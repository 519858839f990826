package yaml

import (
	"time"

	"tarry/agent"
)

// policy reads the tarry block of an agent.
func policy(v value, a *agent.Agent) {
	o := v.object(nil)
	if o == nil {
		return
	}
	o.only([]string{"deadline", "credential_deadline", "on_deadline", "remind", "on_message", "limits"}, nil)
	a.Wait.Deadline = deadline(o)
	if r, ok := o.get("remind"); ok {
		r.place("remind")
		a.Wait.Remind = r.duration("reminders")
	}
	if d, ok := o.get("on_deadline"); ok {
		d.place("on_deadline")
		// What is the default is the same definition whether or not it is written.
		if a.Wait.OnDeadline = agent.OnDeadline(d.text()); a.Wait.OnDeadline == agent.DeadlineDeny {
			a.Wait.OnDeadline = ""
		}
	}
	if m, ok := o.get("on_message"); ok {
		m.place("on_message")
		if a.OnMessage = agent.OnMessage(m.text()); a.OnMessage == agent.MessageQueue {
			a.OnMessage = ""
		}
	}
	if l, ok := o.get("limits"); ok {
		l.place("limits")
		a.Limits = budget(l)
	}
}

// deadline is that of all waits; credential_deadline is its older name.
func deadline(o *object) time.Duration {
	old, before := o.get("credential_deadline")
	d, ok := o.get("deadline")
	switch {
	case ok && before:
		old.fail("is the older name of deadline, which is there too; remove it")
	case before:
		d = old
	case !ok:
		return 0
	}
	d.place("deadline")
	return d.duration("deadline")
}

func budget(v value) (l agent.Limits) {
	o := v.object(nil)
	if o == nil {
		return l
	}
	o.only([]string{"model_calls", "tokens", "duration", "session"}, nil)
	l.ModelCalls, l.Tokens, l.Duration = amounts(o)
	s, ok := o.get("session")
	if !ok {
		return l
	}
	if o := s.object(nil); o != nil {
		o.only([]string{"model_calls", "tokens", "duration"}, nil)
		l.Session.ModelCalls, l.Session.Tokens, l.Session.Duration = amounts(o)
	}
	return l
}

func amounts(o *object) (calls, tokens int, d time.Duration) {
	if v, ok := o.get("duration"); ok {
		d = v.duration("limit")
	}
	return o.amount("model_calls"), o.amount("tokens"), d
}

// amount returns a field's whole number, at least 1; one that is not there is 0.
func (o *object) amount(key string) int {
	v, ok := o.get(key)
	if !ok {
		return 0
	}
	before := len(v.doc.problems.errs)
	n := v.integer()
	if n <= 0 && len(v.doc.problems.errs) == before {
		v.fail("%s must be more than 0; leave it out for no limit of this kind", v.shown())
		return 0
	}
	return n
}
