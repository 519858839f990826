package trace

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"time"
	"unicode/utf8"
)

// Span is one bar of a trace. Times are nanoseconds since 1970. What has not ended yet ends now.
type Span struct {
	Name       string         `json:"name"`
	Start      int64          `json:"start_time"`
	End        int64          `json:"end_time"`
	TraceID    string         `json:"trace_id"`
	SpanID     string         `json:"span_id"`
	Parent     string         `json:"parent_span_id,omitempty"`
	Attributes map[string]any `json:"attributes"`
}

// Flat is s as ADK shows the span of one event: attributes beside the rest.
func (s Span) Flat() map[string]any {
	out := maps.Clone(s.Attributes)
	out["name"], out["start_time"], out["end_time"], out["trace_id"], out["span_id"] = s.Name, s.Start, s.End, s.TraceID, s.SpanID
	if s.Parent != "" {
		out["parent_span_id"] = s.Parent
	}
	return out
}

// Attributes by OpenTelemetry's conventions for generative AI, and those of ADK.
const (
	attrSystem       = "gen_ai.system"
	attrOperation    = "gen_ai.operation.name"
	attrConversation = "gen_ai.conversation.id"
	attrAgent        = "gen_ai.agent.name"
	attrDescription  = "gen_ai.agent.description"
	attrModel        = "gen_ai.request.model"
	attrAnsweredBy   = "gen_ai.response.model"
	attrFinish       = "gen_ai.response.finish_reasons"
	attrInputTokens  = "gen_ai.usage.input_tokens"
	attrOutputTokens = "gen_ai.usage.output_tokens"
	attrTool         = "gen_ai.tool.name"
	attrCall         = "gen_ai.tool.call.id"
	attrInvocation   = "gcp.vertex.agent.invocation_id"
	attrSession      = "gcp.vertex.agent.session_id"
	attrEvent        = "gcp.vertex.agent.event_id"
	attrRequest      = "gcp.vertex.agent.llm_request"
	attrResponse     = "gcp.vertex.agent.llm_response"
	attrArgs         = "gcp.vertex.agent.tool_call_args"
	attrResult       = "gcp.vertex.agent.tool_response"
	attrBranch       = "tarry.branch"
	attrOpen         = "tarry.open"
	attrWaitKind     = "tarry.wait.kind"
	attrWaitRequest  = "tarry.wait.request"
	attrWaitStatus   = "tarry.wait.status"
	attrError        = "error.type"
)

// ids are of the lengths that OpenTelemetry gives them, in hex. The same thing has the same id in every answer.
func traceID(invocation string) string  { return digest(16, "trace", invocation) }
func spanID(kind, of, id string) string { return digest(8, kind, of, id) }

func digest(bytes int, parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:bytes])
}

// nanos is the time of an event, which is in seconds.
func nanos(timestamp float64) int64 { return int64(timestamp*1e6) * int64(time.Microsecond) }

// nothing is what clients read where there is no room for more.
const nothing = "{}"

// text is v as JSON. Of what is longer than limit bytes it is the beginning, as a string.
func text(v any, limit int) string {
	body, err := json.Marshal(v)
	if err != nil {
		return nothing
	}
	if len(body) <= limit {
		return string(body)
	}
	if body, err = json.Marshal(cut(string(body), limit)); err != nil {
		return nothing
	}
	return string(body)
}

func cut(s string, limit int) string {
	at := limit
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s… (%d bytes in all; the event has them)", s[:at], len(s))
}
