package trace

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
)

// builder makes the spans of one invocation.
type builder struct {
	Source

	run
	limit int  // of one text
	room  *int // for all texts
	most  int  // spans
	// only is the one event whose texts are wanted; empty means all.
	only string

	byID     map[string]*session.Record
	agents   map[string]*agent.Agent
	spans    []Span
	turns    map[string]*turn // by branch and scope
	calls    map[string]int   // span of a call
	requests map[string]auth.Request
	last     int64
	open     bool
}

// turn is the span of the agent that speaks last in a branch.
type turn struct {
	agent string
	span  int
}

func (s Source) builder(of run) *builder {
	b := &builder{
		Source: s, run: of, byID: make(map[string]*session.Record, len(of.events)), agents: map[string]*agent.Agent{},
		turns: map[string]*turn{}, calls: map[string]int{}, requests: map[string]auth.Request{},
	}
	for _, r := range of.events {
		b.byID[r.ID] = r
		b.last = max(b.last, nanos(r.Timestamp))
	}
	if s.Definition != nil {
		for a := range s.Definition.All() {
			b.agents[a.Name] = a
		}
	}
	for _, r := range s.Requests {
		if r.Session == s.Session && r.Invocation == of.id {
			b.requests[r.ID] = r
			b.open = b.open || r.Status.Open()
		}
	}
	return b
}

func (b *builder) build() []Span {
	if len(b.events) == 0 {
		return nil
	}
	b.add(Span{Name: "invocation", SpanID: spanID("invocation", b.id, ""), Start: nanos(b.events[0].Timestamp), End: b.last})
	for _, r := range b.events {
		if len(b.spans) > b.most {
			break
		}
		b.event(r)
	}
	for _, r := range b.Requests { // those of long-running calls have no event of their own
		if r, ok := b.requests[r.ID]; ok && r.Need.Type == auth.TypeResult {
			b.wait(r, "")
		}
	}
	return b.finished()
}

// finished ends what is open, and parents with the last of their children.
func (b *builder) finished() []Span {
	now := b.Now.UnixNano()
	for _, i := range b.calls {
		if b.spans[i].End == 0 {
			b.spans[i].End, b.spans[i].Attributes[attrOpen] = max(now, b.spans[i].Start), true
			b.open = true
		}
	}
	at := map[string]int{}
	for i := range b.spans {
		at[b.spans[i].SpanID] = i
	}
	for i := range slices.Backward(b.spans) { // children come after their parents
		s := &b.spans[i]
		s.End = max(s.End, s.Start)
		if parent, ok := at[s.Parent]; ok && s.Parent != s.SpanID {
			b.spans[parent].End = max(b.spans[parent].End, s.End)
		}
	}
	if b.open {
		b.spans[0].Attributes[attrOpen] = true
	}
	return b.spans
}

// add fills in what all spans have, and returns the place of s.
func (b *builder) add(s Span) int {
	s.TraceID = traceID(b.id)
	attributes := map[string]any{attrInvocation: b.id, attrSession: b.Session, attrConversation: b.Session}
	maps.Copy(attributes, s.Attributes)
	s.Attributes = attributes
	b.spans = append(b.spans, s)
	return len(b.spans) - 1
}

func (b *builder) event(r *session.Record) {
	if r.Author == agent.UserAuthor {
		return
	}
	turn := b.turn(r)
	switch r.Kind {
	case session.KindModel, session.KindAgent:
		b.model(r, turn)
	case session.KindResponse:
		b.response(r)
	case session.KindRequest:
		for _, call := range r.Calls() {
			if q, ok := b.requests[call.ID]; ok {
				b.wait(q, r.ID)
			}
		}
	case session.KindNotice:
		b.spans[0].Attributes[attrError] = r.ErrorCode
	case session.KindUser, session.KindReminder, session.KindInterim, session.KindPatch: // nothing that takes time
	}
}

// turn is the span of the agent that r belongs to: it goes on until another agent speaks in the same branch.
func (b *builder) turn(r *session.Record) *turn {
	place := r.Branch + "\n" + r.IsolationScope
	t := b.turns[place]
	if t != nil && t.agent == r.Author {
		b.spans[t.span].End = max(b.spans[t.span].End, nanos(r.Timestamp))
		return t
	}
	parent := b.spans[0].SpanID
	if i, ok := b.calls[r.IsolationScope]; ok && r.IsolationScope != "" {
		parent = b.spans[i].SpanID
	}
	attributes := map[string]any{attrOperation: "invoke_agent", attrAgent: r.Author}
	if a := b.agents[r.Author]; a != nil {
		attributes[attrDescription] = a.Description
	}
	if r.Branch != "" {
		attributes[attrBranch] = r.Branch
	}
	t = &turn{agent: r.Author, span: b.add(Span{
		Name: "invoke_agent " + r.Author, SpanID: spanID("turn", b.id, r.ID), Parent: parent, Start: b.begun(r), End: nanos(r.Timestamp), Attributes: attributes,
	})}
	b.turns[place] = t
	return t
}

// begun is when what led to r was there: the last of what it follows.
func (b *builder) begun(r *session.Record) int64 {
	var out int64
	for _, id := range r.Parents {
		if parent := b.byID[id]; parent != nil {
			out = max(out, nanos(parent.Timestamp))
		}
	}
	if out == 0 {
		out = b.spans[0].Start
	}
	return min(out, nanos(r.Timestamp))
}

func (b *builder) model(r *session.Record, t *turn) {
	if r.Kind == session.KindModel {
		b.add(Span{Name: "call_llm", SpanID: spanID("model", b.id, r.ID), Parent: b.spans[t.span].SpanID, Start: b.begun(r), End: nanos(r.Timestamp), Attributes: b.answer(r)})
	}
	for _, call := range r.Calls() {
		if agent.Reserved(call.Name) && call.Name != agent.TransferToAgent {
			continue
		}
		b.calls[call.ID] = b.add(Span{
			Name: "execute_tool " + call.Name, SpanID: spanID("call", b.id, call.ID), Parent: b.spans[t.span].SpanID, Start: nanos(r.Timestamp),
			Attributes: map[string]any{
				attrOperation: "execute_tool", attrTool: call.Name, attrCall: call.ID, attrAgent: r.Author,
				// ADK's web UI looks for these two on every span of an event.
				attrRequest: nothing, attrResponse: nothing,
			},
		})
		if b.answers(call.ID) {
			b.spans[b.calls[call.ID]].Attributes[attrArgs] = b.fit(orEmpty(call.Args))
		}
	}
}

// answer is what a model was asked and said.
func (b *builder) answer(r *session.Record) map[string]any {
	out := map[string]any{attrSystem: "tarry", attrEvent: r.ID, attrAgent: r.Author}
	model := b.modelOf(r.Author)
	if model != "" {
		out[attrModel] = model
	}
	if r.ModelVersion != "" {
		out[attrAnsweredBy] = r.ModelVersion
	}
	if u := r.UsageMetadata; u != nil {
		out[attrInputTokens], out[attrOutputTokens] = u.PromptTokenCount, u.CandidatesTokenCount
	}
	if r.FinishReason != "" {
		out[attrFinish] = []string{strings.ToLower(string(r.FinishReason))}
	}
	if r.ErrorCode != "" {
		out[attrError] = r.ErrorCode
	}
	if b.wants(r.ID) {
		out[attrRequest] = b.request(model, r)
		out[attrResponse] = b.fit(map[string]any{"content": r.Content})
	}
	return out
}

// request is what a model was asked: of a trace what was new to it, of one event all. The last of it, where it is too long.
func (b *builder) request(model string, r *session.Record) string {
	said := b.news(r)
	if b.only != "" {
		said = b.conversation(r, said)
	}
	if *b.room < 0 {
		return nothing
	}
	kept, size := []json.RawMessage{}, len(model)+len(`{"contents":[],"model":"","omitted":12345}`)
	for _, content := range slices.Backward(said) {
		body, err := json.Marshal(withoutData(content))
		if err != nil || size+len(body)+1 > b.limit {
			break
		}
		kept, size = append(kept, body), size+len(body)+1
	}
	slices.Reverse(kept)
	out := map[string]any{"contents": kept}
	if model != "" {
		out["model"] = model
	}
	if n := len(said) - len(kept); n > 0 {
		out["omitted"] = n
	}
	return b.fit(out)
}

// conversation is all that r's model was told, without its instruction, which is not the session's.
func (b *builder) conversation(r *session.Record, otherwise []*genai.Content) []*genai.Content {
	all := make(map[string]*session.Record, len(b.Events))
	for _, e := range b.Events {
		all[e.ID] = e
	}
	view, _ := session.Ancestors(all, r.Parents)
	reader := session.Reader{Agent: r.Author, Branch: r.Branch, Scope: r.IsolationScope}
	if a := b.agents[r.Author]; a != nil {
		reader.Include = a.IncludeContents
	}
	out, err := session.Contents(view, reader)
	if err != nil {
		return otherwise
	}
	return out
}

// modelOf is the agent's own model or that of the nearest agent above it.
func (b *builder) modelOf(name string) string {
	if b.Definition == nil {
		return ""
	}
	return b.Definition.ModelOf(name)
}

// news is what r's model was told that it had not been told in this invocation before: all that led to r since its agent spoke last.
func (b *builder) news(r *session.Record) []*genai.Content {
	const most = 50
	var out []*genai.Content
	seen, next := map[string]bool{}, slices.Clone(r.Parents)
	var found []*session.Record
	for len(next) > 0 && len(found) < most {
		id := next[0]
		next = next[1:]
		parent := b.byID[id]
		if parent == nil || seen[id] {
			continue
		}
		seen[id] = true
		if parent.Kind == session.KindModel && parent.Author == r.Author {
			continue
		}
		next = append(next, parent.Parents...)
		if parent.Content != nil && parent.Kind != session.KindRequest && parent.Kind != session.KindInterim {
			found = append(found, parent)
		}
	}
	slices.SortFunc(found, func(x, y *session.Record) int { return int(x.Seq - y.Seq) })
	for _, parent := range found {
		out = append(out, parent.Content)
	}
	return out
}

// withoutData leaves out files: a trace is text.
func withoutData(c *genai.Content) *genai.Content {
	if !slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p.InlineData != nil }) {
		return c
	}
	return &genai.Content{Role: c.Role, Parts: slices.DeleteFunc(slices.Clone(c.Parts), func(p *genai.Part) bool { return p.InlineData != nil })}
}

func (b *builder) response(r *session.Record) {
	for _, response := range r.Responses() {
		i, ok := b.calls[response.ID]
		if !ok {
			continue
		}
		s := &b.spans[i]
		s.End, s.Attributes[attrEvent] = nanos(r.Timestamp), r.ID
		if b.wants(r.ID) {
			s.Attributes[attrResult] = b.fit(orEmpty(response.Response))
		}
	}
}

// wait is the time that a person took. Of a request its kind is told, and how it ended.
func (b *builder) wait(r auth.Request, event string) {
	parent := b.spans[0].SpanID
	if i, ok := b.calls[r.Call]; ok {
		parent = b.spans[i].SpanID
	} else if i, ok := b.calls[r.ID]; ok {
		parent = b.spans[i].SpanID
	}
	kind := r.Need.Type
	if r.Need.Login() {
		kind = "login"
	}
	attributes := map[string]any{attrWaitKind: kind, attrWaitRequest: r.ID, attrWaitStatus: string(r.Status), attrAgent: r.Agent}
	if event != "" {
		attributes[attrEvent] = event
	}
	if r.Need.Tool != "" {
		attributes[attrTool] = r.Need.Tool
	}
	end := r.Ended.UnixNano()
	if r.Ended.IsZero() {
		end, attributes[attrOpen] = b.Now.UnixNano(), true
	}
	b.add(Span{Name: "wait_for_person " + kind, SpanID: spanID("wait", b.id, r.ID), Parent: parent, Start: r.Created.UnixNano(), End: end, Attributes: attributes})
}

func (b *builder) wants(event string) bool {
	return b.only == "" || b.only == event
}

// answers says whether the event that is wanted answers a call: its arguments are of an event before.
func (b *builder) answers(call string) bool {
	if b.only == "" {
		return true
	}
	r := b.byID[b.only]
	return r != nil && slices.ContainsFunc(r.Responses(), func(f *genai.FunctionResponse) bool { return f.ID == call })
}

// fit is v as JSON, as long as there is room.
func (b *builder) fit(v any) string {
	out := text(v, b.limit)
	if *b.room -= len(out); *b.room < 0 {
		return nothing
	}
	return out
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
