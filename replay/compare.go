package replay

import (
	"bytes"
	"slices"
)

// comparison matches the steps of a history with those of the code. Activities, timers and what else is a command keep
// their order; a local activity stands in history once it has ended, which several at once may do in any order.
type comparison struct {
	history, code []step
	last          int64 // what the code does in later tasks is not history yet
	used          []bool
	agreed        int
	spare         int // how many steps of the code were dropped and may be passed over
}

func compare(history, code []step, last int64) *comparison {
	c := &comparison{history: history, last: last}
	for _, s := range code {
		if s.task <= last {
			c.code = append(c.code, s)
		}
	}
	c.used = make([]bool, len(c.code))
	return c
}

// difference returns the first step of the history that the code does not take, or the first of the code that the history
// lacks. It is nil if there is none. Inputs are compared if inputs says so.
func (c *comparison) difference(inputs bool) *DifferenceError {
	if inputs {
		c.spare = max(0, len(c.code)-len(c.history))
	}
	for _, then := range c.history {
		i := c.find(then, inputs)
		if i < 0 {
			return c.other(then)
		}
		c.used[i] = true
		now := c.code[i]
		if inputs && !equal(then, now) {
			return c.input(then, now)
		}
		if then.is(kindActivity) || then.is(kindLocal) {
			c.agreed++
		}
	}
	if inputs {
		return nil // the SDK's replayer has found nothing missing
	}
	if now := c.next(nil); now != nil {
		return &DifferenceError{Now: now.would(), Agreed: c.agreed, Reason: reasonExtra}
	}
	return nil
}

func equal(then, now step) bool {
	switch then.kind {
	case kindActivity:
		return bytes.Equal(then.input, now.input)
	case kindTimer:
		return then.wait == now.wait
	case kindLocal, kindStatus, kindEnd:
	}
	return true
}

// find returns the code's step that is the history's; -1 if the code does something else there.
func (c *comparison) find(then step, inputs bool) int {
	for i, now := range c.code {
		switch {
		case c.used[i] || now.is(kindLocal) != then.is(kindLocal):
			continue
		case then.same(now) && (!inputs || equal(then, now)):
			return i
		case then.is(kindLocal):
			continue
		case now.dropped != nil && now.dropped() && (now.is(kindTimer) && !then.is(kindTimer) || c.spare > 0):
			if c.spare > 0 {
				c.spare--
			}
			c.used[i] = true
			continue
		case then.same(now):
			return i // with another input
		}
		return -1
	}
	return -1
}

// next is the first step of the code that nothing in the history has matched. A local activity whose marker comes later is
// none: it goes on meanwhile.
func (c *comparison) next(then *step) *step {
	for i := range c.code {
		if c.used[i] {
			continue
		}
		later := then != nil && c.code[i].is(kindLocal) && slices.ContainsFunc(c.history, func(h step) bool {
			return h.event > then.event && h.task == c.code[i].task && h.same(c.code[i])
		})
		if !later {
			return &c.code[i]
		}
	}
	return nil
}

// other is the difference where the history has a step and the code another, or none.
func (c *comparison) other(then step) *DifferenceError {
	d := &DifferenceError{Event: then.event, Agreed: c.agreed, agent: then.agent()}
	now := c.next(&then)
	if now == nil {
		d.Then, d.Reason = then.did(), reasonMissing
		return d
	}
	// In one task the step that is passed over tells what happened: a step more, a step less, or another order.
	left := slices.ContainsFunc(c.history, func(h step) bool {
		return h.event > then.event && h.task == then.task && h.same(*now) && equal(h, *now)
	})
	comes := slices.ContainsFunc(c.code[slices.Index(c.used, false):], func(s step) bool {
		return s.task == then.task && s.same(then) && equal(then, s)
	})
	switch {
	case now.task > then.task, left && !comes:
		d.Then, d.Reason = then.did(), reasonMissing
	case now.task < then.task, comes && !left:
		d.Now, d.Reason = now.would(), reasonExtra
	default:
		d.Then, d.Now, d.Reason = then.did(), now.would(), reasonOther
	}
	return d
}

// input is the difference of one step that is done with something else.
func (c *comparison) input(then, now step) *DifferenceError {
	d := &DifferenceError{Event: then.event, Then: then.did(), Now: now.would(), Agreed: c.agreed, Reason: reasonInput, agent: then.agent()}
	if then.is(kindActivity) {
		var was, is string
		d.Fields, was, is = fields(then.input, now.input, then.did() != now.did())
		if then.did() == now.did() {
			d.Now = "do so"
		}
		d.Then, d.Now = d.Then+was, d.Now+is
	}
	return d
}
