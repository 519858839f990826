package models

import (
	"context"
	"iter"

	"google.golang.org/genai"
)

// Model is one language model. Implementations are safe for concurrent use, do not change the request, and keep no
// memory between calls.
//
// With stream=false the sequence holds exactly one element. With stream=true it holds any number of responses with
// Partial=true, each carrying only what is new, and then one with Partial=false that carries the whole answer. An error
// is the last element of a sequence; it is an *[Error], or wraps the context's error once ctx is done. Breaking out of
// the sequence ends the request.
type Model interface {
	GenerateContent(ctx context.Context, req *Request, stream bool) iter.Seq2[*Response, error]
}

// Request is what a model is asked.
type Request struct {
	// Model is the name in the agent's definition. It is a label: a provider sends the name that it was made with.
	Model string
	// Agent is the name of the asking agent: a label for scripted models and telemetry that is never sent to a provider.
	Agent string
	// Invocation is the id of the run of the agents that the request belongs to: a label like Agent.
	Invocation string
	// Contents is the conversation, oldest first. Roles are "user" and "model".
	Contents []*genai.Content
	// Config holds the system instruction, the tools and the generation settings; nil means none. Its HTTPOptions are
	// ignored: a definition must not be able to send a provider's key to another host.
	Config *genai.GenerateContentConfig
}

// Response is one answer, or one part of an answer that is being streamed.
type Response struct {
	// Content has the role "model". It is nil where the provider gave none, for example for a blocked prompt.
	Content *genai.Content
	// UsageMetadata counts tokens; nil where the provider counts none. Only the last response of a stream need have it.
	UsageMetadata *genai.GenerateContentResponseUsageMetadata
	// FinishReason says why the model stopped; empty in partial responses.
	FinishReason genai.FinishReason
	// ModelVersion is the model that answered, as the provider names it.
	ModelVersion string
	// ErrorCode is set where the provider answered without content, to the reason: "SAFETY", "MAX_TOKENS" and so on, as
	// in ADK. ErrorMessage then is a fixed text of ours. An answer that has content and was cut off has no ErrorCode.
	ErrorCode    string
	ErrorMessage string
	// Partial marks a piece of a stream; the final response repeats its content.
	Partial bool
	// TurnComplete is true in the last response.
	TurnComplete bool
}

// Texts that [EnsureUserTurn] appends; the wording is ADK's.
const (
	// StartText stands in for an empty conversation.
	StartText = "Handle the requests as specified in the System Instruction."
	// ContinueText follows a conversation that ends with the model's own words.
	ContinueText = "Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed."
)

// EnsureUserTurn returns contents that end with a user's turn, as providers demand: an agent in a loop sees its own
// last answer at the end. The argument is not changed.
func EnsureUserTurn(contents []*genai.Content) []*genai.Content {
	text := ContinueText
	if len(contents) == 0 {
		text = StartText
	} else if last := contents[len(contents)-1]; last == nil || last.Role != genai.RoleModel {
		return contents
	}
	out := make([]*genai.Content, 0, len(contents)+1)
	out = append(out, contents...)
	return append(out, genai.NewContentFromText(text, genai.RoleUser))
}
