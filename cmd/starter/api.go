package main

import (
	"encoding/json"
	"slices"
	"strings"

	"tarry/server/runs"
)

// States and endings, as the server names them.
const (
	stateRunning     = "running"
	stateWaiting     = "waiting_credential"
	endingDone       = "done"
	endingFailed     = "failed"
	endingLimit      = "limit"
	endingCancelled  = "cancelled"
	endingSuperseded = "superseded"
)

// subject names what a login is for: a tool, or the toolset that could not be listed without.
func subject(tool, toolset string) string {
	if tool != "" {
		return "tool " + tool
	}
	return "toolset " + toolset
}

// wanted says what a person is asked for, and by whom.
func wanted(w *runs.Waiting) string {
	switch w.Kind {
	case kindInput:
		return "input for " + w.Provider
	case kindConfirmation:
		return "your approval (starter approve)"
	case kindQuestion:
		return "your answer (starter answer)"
	case kindResult:
		return "the result (starter answer)"
	}
	return "a login at " + w.Provider
}

const kindInput = "input"

// statusInfo is one run with its last or current invocation.
type statusInfo struct{ runs.Status }

// over says whether the invocation has ended.
func (s *statusInfo) over() bool {
	switch s.InvocationStatus {
	case endingDone, endingFailed, endingLimit, endingCancelled, endingSuperseded:
		return true
	default:
		return false
	}
}

// goesOn says whether the session has something to do: a chat whose last invocation has ended may have the next queued.
func (s *statusInfo) goesOn() bool {
	return s.State == stateRunning || strings.HasPrefix(s.State, "waiting_")
}

// exit is the exit status for how the run stands.
func (s *statusInfo) exit() int {
	switch s.InvocationStatus {
	case endingDone:
		if s.Denied {
			return exitDenied
		}
		return exitDone
	case endingFailed, endingLimit:
		return exitFailed
	case endingCancelled, endingSuperseded:
		return exitCancelled
	default:
		return exitWaiting
	}
}

// event is as much of an ADK event as is shown.
type event struct {
	ID           string `json:"id"`
	InvocationID string `json:"invocationId"`
	Author       string `json:"author"`
	Partial      bool   `json:"partial"`
	ErrorCode    string `json:"errorCode"`
	ErrorMessage string `json:"errorMessage"`
	Content      struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	} `json:"content"`
	LongRunning []string `json:"longRunningToolIds"`
}

type part struct {
	Text             string            `json:"text"`
	Thought          bool              `json:"thought"`
	FunctionCall     *functionCall     `json:"functionCall"`
	FunctionResponse *functionResponse `json:"functionResponse"`
}

type functionCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type functionResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
	// WillContinue marks what is known of a long-running call before its result.
	WillContinue bool `json:"willContinue"`
}

const (
	requestCredential   = "adk_request_credential"
	requestConfirmation = "adk_request_confirmation"
	requestInput        = "adk_request_input"
)

// asks returns the call that asks for a login, or nil. A model can write down a call of that name too, with any link; what
// the server asks is marked as running on.
func (e *event) asks() *functionCall {
	for _, p := range e.Content.Parts {
		if p.FunctionCall != nil && p.FunctionCall.Name == requestCredential && slices.Contains(e.LongRunning, p.FunctionCall.ID) {
			return p.FunctionCall
		}
	}
	return nil
}

// approval returns the call that waits for approval, or nil.
func (e *event) approval() *functionCall {
	for _, p := range e.Content.Parts {
		if p.FunctionCall == nil || p.FunctionCall.Name != requestConfirmation || !slices.Contains(e.LongRunning, p.FunctionCall.ID) {
			continue
		}
		var args struct {
			Original *functionCall `json:"originalFunctionCall"`
		}
		if json.Unmarshal(p.FunctionCall.Args, &args) == nil {
			return args.Original
		}
	}
	return nil
}

// question returns what a tool asks, or "".
func (e *event) question() string {
	for _, p := range e.Content.Parts {
		if p.FunctionCall == nil || p.FunctionCall.Name != requestInput || !slices.Contains(e.LongRunning, p.FunctionCall.ID) {
			continue
		}
		var args struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(p.FunctionCall.Args, &args) == nil {
			return args.Message
		}
	}
	return ""
}

// link is where the person answers; input says that it is no login.
func (c *functionCall) link() (link string, input bool) {
	var args struct {
		AuthConfig struct {
			Key       string `json:"credentialKey"`
			Exchanged struct {
				OAuth2 struct {
					AuthURI string `json:"authUri"`
				} `json:"oauth2"`
			} `json:"exchangedAuthCredential"`
		} `json:"authConfig"`
	}
	if json.Unmarshal(c.Args, &args) != nil {
		return "", false
	}
	return args.AuthConfig.Exchanged.OAuth2.AuthURI, strings.HasPrefix(args.AuthConfig.Key, "tarry_input_")
}
