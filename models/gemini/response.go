package gemini

import (
	"slices"

	"google.golang.org/genai"

	"tarry/models"
)

// response translates a whole answer. Where the provider gave no usable content, ErrorCode says why, as in ADK.
func response(resp *genai.GenerateContentResponse) (*models.Response, error) {
	out := &models.Response{
		UsageMetadata: resp.UsageMetadata,
		ModelVersion:  resp.ModelVersion,
		TurnComplete:  true,
	}
	if len(resp.Candidates) == 0 || resp.Candidates[0] == nil {
		if resp.PromptFeedback == nil {
			return nil, &models.Error{Kind: models.KindUnreadable, Provider: Provider, Message: "answer has no candidate"}
		}
		out.ErrorCode = string(resp.PromptFeedback.BlockReason)
		if out.ErrorCode == "" {
			out.ErrorCode = string(genai.BlockedReasonUnspecified)
		}
		out.ErrorMessage = "the provider blocked the prompt"
		return out, nil
	}
	candidate := resp.Candidates[0]
	if candidate.FinishReason == genai.FinishReasonMalformedFunctionCall {
		return nil, &models.Error{
			Kind: models.KindMalformedCall, Provider: Provider,
			Message: "the model wrote a function call that is not readable",
		}
	}
	out.FinishReason = candidate.FinishReason
	if candidate.Content != nil {
		// A model answers no function: a response that it writes itself would pass for a tool's.
		parts := slices.DeleteFunc(slices.Clone(candidate.Content.Parts), func(p *genai.Part) bool { return p == nil || p.FunctionResponse != nil })
		if len(parts) > 0 {
			out.Content = &genai.Content{Role: genai.RoleModel, Parts: parts}
		}
	}
	if out.Content != nil {
		return out, nil
	}
	switch candidate.FinishReason {
	case genai.FinishReasonStop, genai.FinishReasonUnspecified, "":
	case genai.FinishReasonMaxTokens:
		out.ErrorCode, out.ErrorMessage = string(candidate.FinishReason), "the answer reached the token limit"
	default:
		out.ErrorCode, out.ErrorMessage = string(candidate.FinishReason), "the provider stopped the answer"
	}
	return out, nil
}

// aggregate puts the chunks of a stream together. Neighbouring texts of the same sort become one part; every other part
// stays as it came. A thought signature ends its part, since it signs exactly what came before it.
type aggregate struct {
	parts    []*genai.Part
	finish   genai.FinishReason
	usage    *genai.GenerateContentResponseUsageMetadata
	version  string
	feedback *genai.GenerateContentResponsePromptFeedback
}

// add returns what is new as a partial response, or nil if there is nothing to show.
func (a *aggregate) add(chunk *genai.GenerateContentResponse) *models.Response {
	if chunk.UsageMetadata != nil {
		a.usage = chunk.UsageMetadata
	}
	if chunk.ModelVersion != "" {
		a.version = chunk.ModelVersion
	}
	if chunk.PromptFeedback != nil {
		a.feedback = chunk.PromptFeedback
	}
	if len(chunk.Candidates) == 0 || chunk.Candidates[0] == nil {
		return nil
	}
	candidate := chunk.Candidates[0]
	if candidate.FinishReason != "" {
		a.finish = candidate.FinishReason
	}
	if candidate.Content == nil {
		return nil
	}
	var visible []*genai.Part
	for _, part := range candidate.Content.Parts {
		if part == nil {
			continue
		}
		a.addPart(part)
		if part.Text != "" {
			visible = append(visible, &genai.Part{Text: part.Text, Thought: part.Thought})
		}
	}
	if len(visible) == 0 {
		return nil
	}
	return &models.Response{
		Content:      &genai.Content{Role: genai.RoleModel, Parts: visible},
		ModelVersion: a.version,
		Partial:      true,
	}
}

func (a *aggregate) addPart(part *genai.Part) {
	if !isText(part) {
		a.parts = append(a.parts, part)
		return
	}
	if n := len(a.parts); n > 0 {
		last := a.parts[n-1]
		// An empty last chunk that only brings the signature signs the text so far, whatever its own thought flag.
		same := last.Thought == part.Thought || part.Text == ""
		if isText(last) && same && len(last.ThoughtSignature) == 0 {
			last.Text += part.Text
			last.ThoughtSignature = part.ThoughtSignature
			return
		}
	}
	if part.Text == "" {
		return // the API refuses a part with a signature and nothing else when it is sent back
	}
	copied := *part
	a.parts = append(a.parts, &copied)
}

func isText(p *genai.Part) bool {
	return p.FunctionCall == nil && p.FunctionResponse == nil && p.InlineData == nil && p.FileData == nil &&
		p.ExecutableCode == nil && p.CodeExecutionResult == nil && p.ToolCall == nil && p.ToolResponse == nil &&
		p.AudioTranscription == nil && p.VideoMetadata == nil
}

func (a *aggregate) finished() bool { return a.finish != "" || a.feedback != nil }

func (a *aggregate) result() *genai.GenerateContentResponse {
	out := &genai.GenerateContentResponse{
		UsageMetadata: a.usage, ModelVersion: a.version, PromptFeedback: a.feedback,
	}
	if a.finish != "" || len(a.parts) > 0 {
		out.Candidates = []*genai.Candidate{{
			Content: &genai.Content{Role: genai.RoleModel, Parts: a.parts}, FinishReason: a.finish,
		}}
	}
	return out
}
