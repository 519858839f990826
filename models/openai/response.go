package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"tarry/models"
)

// message is an answer in the protocol's terms, whole or put together from a stream.
type message struct {
	model, content, refusal, finish string
	calls                           []call
	usage                           *genai.GenerateContentResponseUsageMetadata
}

type call struct {
	id, name  string
	arguments []byte
}

func (m *Model) whole(completion *openai.ChatCompletion) (*models.Response, error) {
	if completion == nil || len(completion.Choices) == 0 {
		return nil, &models.Error{Kind: models.KindUnreadable, Provider: m.provider, Message: "answer has no choice"}
	}
	choice := completion.Choices[0]
	msg := message{
		model: completion.Model, finish: choice.FinishReason,
		content: choice.Message.Content, refusal: choice.Message.Refusal,
	}
	if completion.JSON.Usage.Valid() {
		msg.usage = usage(completion.Usage)
	}
	for _, c := range choice.Message.ToolCalls {
		msg.calls = append(msg.calls, call{c.ID, c.Function.Name, []byte(c.Function.Arguments)})
	}
	return m.answer(&msg)
}

// answer translates. Calls whose arguments are not a JSON object make the whole answer an error of kind
// models.KindMalformedCall; absent arguments are an empty object, as some servers send for functions without parameters.
func (m *Model) answer(msg *message) (*models.Response, error) {
	out := &models.Response{
		ModelVersion: msg.model, UsageMetadata: msg.usage, TurnComplete: true, FinishReason: finishReason(msg.finish),
	}
	content := &genai.Content{Role: genai.RoleModel}
	if msg.content != "" {
		content.Parts = append(content.Parts, &genai.Part{Text: msg.content})
	}
	if msg.refusal != "" {
		content.Parts = append(content.Parts, &genai.Part{Text: msg.refusal})
		out.FinishReason = genai.FinishReasonSafety
	}
	for _, c := range msg.calls {
		args := map[string]any{}
		if text := bytes.TrimSpace(c.arguments); len(text) > 0 {
			if err := json.Unmarshal(text, &args); err != nil || args == nil {
				return nil, m.malformed(msg.finish)
			}
		}
		if c.name == "" {
			return nil, m.malformed(msg.finish)
		}
		content.Parts = append(content.Parts, &genai.Part{
			FunctionCall: &genai.FunctionCall{ID: c.id, Name: c.name, Args: args},
		})
	}
	if len(content.Parts) > 0 {
		out.Content = content
		return out, nil
	}
	switch out.FinishReason {
	case genai.FinishReasonStop:
	case genai.FinishReasonMaxTokens:
		out.ErrorCode, out.ErrorMessage = string(out.FinishReason), "the answer reached the token limit"
	default:
		out.ErrorCode, out.ErrorMessage = string(out.FinishReason), "the provider stopped the answer"
	}
	return out, nil
}

// malformed tells arguments that the token limit cut off from those that the model wrote wrongly.
func (m *Model) malformed(finish string) error {
	err := &models.Error{
		Kind: models.KindMalformedCall, Provider: m.provider,
		Message: "the model wrote a function call whose arguments are not a JSON object",
	}
	if finish == "length" {
		err.Message = "the token limit cut off a function call"
	}
	return err
}

func finishReason(reason string) genai.FinishReason {
	switch reason {
	case "stop", "tool_calls", "function_call", "":
		return genai.FinishReasonStop
	case "length":
		return genai.FinishReasonMaxTokens
	case "content_filter":
		return genai.FinishReasonSafety
	default:
		return genai.FinishReasonOther
	}
}

// usage keeps genai's meaning, where candidates do not include thoughts.
func usage(u openai.CompletionUsage) *genai.GenerateContentResponseUsageMetadata {
	thoughts := u.CompletionTokensDetails.ReasoningTokens
	return &genai.GenerateContentResponseUsageMetadata{
		PromptTokenCount:        count(u.PromptTokens),
		CandidatesTokenCount:    count(u.CompletionTokens - thoughts),
		ThoughtsTokenCount:      count(thoughts),
		CachedContentTokenCount: count(u.PromptTokensDetails.CachedTokens),
		TotalTokenCount:         count(u.TotalTokens),
	}
}

func count(n int64) int32 {
	return int32(max(0, min(n, 1<<31-1)))
}

// deltas puts a stream together. Tool calls arrive in pieces that belong together by index; some servers send no index
// and a new id for each call, all under index 0.
type deltas struct {
	msg     message
	byIndex map[int64]int
	texts   strings.Builder
	refusal strings.Builder
}

func (d *deltas) add(chunk openai.ChatCompletionChunk) *models.Response {
	if chunk.Model != "" {
		d.msg.model = chunk.Model
	}
	if chunk.JSON.Usage.Valid() {
		d.msg.usage = usage(chunk.Usage)
	}
	if len(chunk.Choices) == 0 {
		return nil
	}
	choice := chunk.Choices[0]
	if choice.FinishReason != "" {
		d.msg.finish = choice.FinishReason
	}
	for _, delta := range choice.Delta.ToolCalls {
		d.addCall(delta)
	}
	d.refusal.WriteString(choice.Delta.Refusal)
	d.texts.WriteString(choice.Delta.Content)
	text := choice.Delta.Content + choice.Delta.Refusal
	if text == "" {
		return nil
	}
	return &models.Response{
		Content:      &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{{Text: text}}},
		ModelVersion: d.msg.model,
		Partial:      true,
	}
}

func (d *deltas) addCall(delta openai.ChatCompletionChunkChoiceDeltaToolCall) {
	if d.byIndex == nil {
		d.byIndex = map[int64]int{}
	}
	at, ok := d.byIndex[delta.Index]
	if ok && delta.ID != "" && d.msg.calls[at].id != "" && d.msg.calls[at].id != delta.ID {
		ok = false
	}
	if !ok {
		at = len(d.msg.calls)
		d.byIndex[delta.Index] = at
		d.msg.calls = append(d.msg.calls, call{})
	}
	c := &d.msg.calls[at]
	if delta.ID != "" {
		c.id = delta.ID
	}
	if delta.Function.Name != "" {
		c.name = delta.Function.Name
	}
	c.arguments = append(c.arguments, delta.Function.Arguments...)
}

func (d *deltas) finished() bool { return d.msg.finish != "" }

func (d *deltas) message() *message {
	d.msg.content, d.msg.refusal = d.texts.String(), d.refusal.String()
	return &d.msg
}
