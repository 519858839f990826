package session

import (
	"bytes"
	"encoding/json"
	"slices"

	"google.golang.org/genai"
)

// Event is one entry of a session in ADK's JSON shape (camelCase, absent rather than null).
type Event struct {
	ID           string `json:"id"`
	InvocationID string `json:"invocationId"`
	Author       string `json:"author"`
	Branch       string `json:"branch,omitempty"`
	// IsolationScope is the call that an agent behind a tool answers: what it says is seen by no other agent (ADK 2.x).
	IsolationScope string         `json:"isolationScope,omitempty"`
	Timestamp      float64        `json:"timestamp"` // seconds since 1970
	Content        *genai.Content `json:"content,omitempty"`
	Actions        Actions        `json:"actions"`
	// LongRunningToolIDs are the calls that wait for somebody outside; clients treat an event that has any as a pause.
	LongRunningToolIDs []string `json:"longRunningToolIds,omitempty"`

	Partial       bool                                        `json:"partial,omitempty"`
	TurnComplete  bool                                        `json:"turnComplete,omitempty"`
	ErrorCode     string                                      `json:"errorCode,omitempty"`
	ErrorMessage  string                                      `json:"errorMessage,omitempty"`
	FinishReason  genai.FinishReason                          `json:"finishReason,omitempty"`
	ModelVersion  string                                      `json:"modelVersion,omitempty"`
	UsageMetadata *genai.GenerateContentResponseUsageMetadata `json:"usageMetadata,omitempty"`
	Custom        map[string]any                              `json:"customMetadata,omitempty"`
}

// Actions are what an event does besides saying something. Its maps are never null on the wire: ADK's clients refuse
// null.
type Actions struct {
	StateDelta                 map[string]any             `json:"stateDelta"`
	ArtifactDelta              map[string]int             `json:"artifactDelta"`
	RequestedAuthConfigs       map[string]json.RawMessage `json:"requestedAuthConfigs"`
	RequestedToolConfirmations map[string]json.RawMessage `json:"requestedToolConfirmations"`
	SkipSummarization          bool                       `json:"skipSummarization,omitempty"`
	Escalate                   bool                       `json:"escalate,omitempty"`
	TransferToAgent            string                     `json:"transferToAgent,omitempty"`
}

// MarshalJSON writes empty maps for nil ones.
func (a Actions) MarshalJSON() ([]byte, error) {
	type plain Actions
	p := plain(a)
	if p.StateDelta == nil {
		p.StateDelta = map[string]any{}
	}
	if p.ArtifactDelta == nil {
		p.ArtifactDelta = map[string]int{}
	}
	if p.RequestedAuthConfigs == nil {
		p.RequestedAuthConfigs = map[string]json.RawMessage{}
	}
	if p.RequestedToolConfirmations == nil {
		p.RequestedToolConfirmations = map[string]json.RawMessage{}
	}
	return json.Marshal(p) //nolint:wrapcheck // the caller is encoding/json, which wraps
}

// MarshalJSON writes an object for the args of every call and the response of every result, also when it is empty:
// clients of ADK cannot show an event without.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	body, err := json.Marshal(plain(e))
	if err != nil || !e.bare() {
		return body, err //nolint:wrapcheck // the caller is encoding/json, which wraps
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber() // a float has no room for a long id
	if err := decoder.Decode(&tree); err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	content, _ := tree["content"].(map[string]any)
	parts, _ := content["parts"].([]any)
	for _, part := range parts {
		fields, _ := part.(map[string]any)
		for part, field := range map[string]string{"functionCall": "args", "functionResponse": "response"} {
			if function, ok := fields[part].(map[string]any); ok && function[field] == nil {
				function[field] = map[string]any{}
			}
		}
	}
	return json.Marshal(tree) //nolint:wrapcheck // as above
}

func (e Event) bare() bool {
	return slices.ContainsFunc(e.Calls(), func(c *genai.FunctionCall) bool { return len(c.Args) == 0 }) ||
		slices.ContainsFunc(e.Responses(), func(r *genai.FunctionResponse) bool { return len(r.Response) == 0 })
}

// Calls lists the function calls of e in order.
func (e *Event) Calls() []*genai.FunctionCall {
	if e.Content == nil {
		return nil
	}
	var out []*genai.FunctionCall
	for _, part := range e.Content.Parts {
		if part.FunctionCall != nil {
			out = append(out, part.FunctionCall)
		}
	}
	return out
}

// Responses lists the function responses of e in order.
func (e *Event) Responses() []*genai.FunctionResponse {
	if e.Content == nil {
		return nil
	}
	var out []*genai.FunctionResponse
	for _, part := range e.Content.Parts {
		if part.FunctionResponse != nil {
			out = append(out, part.FunctionResponse)
		}
	}
	return out
}

// Text is the visible text of e, thoughts left out.
func (e *Event) Text() string {
	if e.Content == nil {
		return ""
	}
	var out string
	for _, part := range e.Content.Parts {
		if !part.Thought {
			out += part.Text
		}
	}
	return out
}

// Final says what ADK's isFinalResponse says: the event ends a turn or pauses it.
func (e *Event) Final() bool {
	if e.Actions.SkipSummarization || len(e.LongRunningToolIDs) > 0 {
		return true
	}
	return len(e.Calls()) == 0 && len(e.Responses()) == 0 && !e.Partial
}

// Asks says whether e asks a person for a login; such events are no part of what a model sees.
func (e *Event) Asks() bool {
	return slices.ContainsFunc(e.Calls(), func(c *genai.FunctionCall) bool { return reserved(c.Name) }) ||
		slices.ContainsFunc(e.Responses(), func(r *genai.FunctionResponse) bool { return reserved(r.Name) })
}
