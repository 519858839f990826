package main

import "encoding/json"

// event is as much of ADK's Event as is looked at; Error is that of a frame that is no event.
type event struct {
	ID                 string
	InvocationID       string
	Author             string
	Partial            bool
	Content            content
	LongRunningToolIDs []string `json:"longRunningToolIds"`
	ErrorCode          string
	ErrorMessage       string
	Error              string
	ErrorDetails       struct{ Status int } `json:"error_details"`
}

type content struct {
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             string            `json:"text,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

type functionResponse struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Response     any    `json:"response"`
	WillContinue bool   `json:"willContinue,omitempty"`
}

const (
	requestCredential   = "adk_request_credential"
	requestConfirmation = "adk_request_confirmation"
	requestInput        = "adk_request_input"
)

// requests says whether the call asks a person.
func (c *functionCall) requests() bool {
	return c.Name == requestCredential || c.Name == requestConfirmation || c.Name == requestInput
}

// arguments are those of the calls that ask a person.
type arguments struct {
	FunctionCallID       string         `json:"functionCallId"`
	AuthConfig           map[string]any `json:"authConfig"`
	OriginalFunctionCall functionCall   `json:"originalFunctionCall"`
	ToolConfirmation     struct{ Hint string }
	Message              string
	ResponseSchema       json.RawMessage
}

func (c *functionCall) arguments() (a arguments) {
	_ = json.Unmarshal(c.Args, &a) // a long-running tool's are its own
	return a
}

// waits is the id of the call that goes on after the reply.
func (c *functionCall) waits() string {
	if c.requests() {
		for _, id := range []string{c.arguments().FunctionCallID, c.arguments().OriginalFunctionCall.ID} {
			if id != "" {
				return id
			}
		}
	}
	return c.ID
}

// speaks says whether the agent says or calls something of its own.
func (e *event) speaks() bool {
	for _, p := range e.Content.Parts {
		if p.Text != "" || p.FunctionCall != nil && !p.FunctionCall.requests() {
			return true
		}
	}
	return false
}
