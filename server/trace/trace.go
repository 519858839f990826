package trace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
)

const (
	// MaxSpans is how many spans a trace has at most, but for the invocation that is the newest.
	MaxSpans = 2000
	// maxLatest bounds the newest invocation.
	maxLatest = 5000
	// maxText bounds each attribute that repeats what an event says, maxTexts all of them; what is beyond is left out.
	maxText  = 4 << 10
	maxTexts = 4 << 20
	// maxFull bounds each attribute of the span of one event.
	maxFull = 256 << 10
)

// Source is what spans are made of.
type Source struct {
	Session string
	// Events are those that lead to where the session stands, in the order of arrival.
	Events []*session.Record
	// Requests are questions to its person, of this session or others.
	Requests []auth.Request
	// Definition names models and describes agents; nil leaves both out.
	Definition *agent.Definition
	// Now ends what has not ended.
	Now time.Time
}

// Spans is the trace of a session, of the newest invocations where it has too many, or of one of them. Sorted by start.
func (s Source) Spans(invocation string) []Span {
	out := []Span{}
	room := maxTexts
	all := s.invocations()
	for i, of := range slices.Backward(all) {
		if invocation != "" && of.id != invocation {
			continue
		}
		b := s.builder(of)
		b.limit, b.room = maxText, &room
		b.most = maxLatest
		if i < len(all)-1 && invocation == "" {
			b.most = MaxSpans - len(out)
		}
		found := b.build()
		if len(found) > b.most {
			if len(out) > 0 {
				break
			}
			found = found[:b.most] // parents come first
		}
		out = append(out, found...)
		if len(out) >= MaxSpans {
			break
		}
	}
	slices.SortStableFunc(out, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return out
}

// Event is the span of one event, with more of what it says; false for events that are none: what people say, for instance.
func (s Source) Event(id string) (Span, bool) {
	at := slices.IndexFunc(s.Events, func(r *session.Record) bool { return r.ID == id })
	if at < 0 {
		return Span{}, false
	}
	for _, of := range s.invocations() {
		if of.id != s.Events[at].InvocationID {
			continue
		}
		b := s.builder(of)
		room := 4 * maxFull
		b.limit, b.room, b.only, b.most = maxFull, &room, id, math.MaxInt
		for _, span := range b.build() {
			if span.Attributes[attrEvent] == id {
				return span, true
			}
		}
	}
	return Span{}, false
}

// run is the events of one invocation.
type run struct {
	id     string
	events []*session.Record
}

// invocations groups the events, leaving out what belongs to none: what clients wrote to the state.
func (s Source) invocations() []run {
	var out []run
	at := map[string]int{}
	for _, r := range s.Events {
		if r.Kind == session.KindPatch || r.Kind == session.KindReminder {
			continue
		}
		i, ok := at[r.InvocationID]
		if !ok {
			i = len(out)
			at[r.InvocationID] = i
			out = append(out, run{id: r.InvocationID})
		}
		out[i].events = append(out[i].events, r)
	}
	return out
}
