package scripted

import (
	"context"
	"iter"
	"strings"
	"time"

	"google.golang.org/genai"

	"tarry/models"
)

// Func is a model made of a function, for tests. When streaming, the words of its answer come as partial responses.
type Func func(ctx context.Context, req *models.Request) (*models.Response, error)

// GenerateContent implements [models.Model].
func (f Func) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		resp, err := f(ctx, req)
		if err != nil {
			yield(nil, err)
			return
		}
		emit(ctx, resp, stream, 0, yield)
	}
}

// Text is an answer in words, for a [Func].
func Text(text string) *models.Response {
	return answerOf(&genai.Part{Text: text})
}

// FunctionCall is an answer that calls one function, for a [Func].
func FunctionCall(name string, args map[string]any) *models.Response {
	return answerOf(genai.NewPartFromFunctionCall(name, args))
}

func answerOf(part *genai.Part) *models.Response {
	return &models.Response{
		Content:      &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{part}},
		FinishReason: genai.FinishReasonStop, ModelVersion: Provider, TurnComplete: true,
	}
}

func emit(ctx context.Context, resp *models.Response, stream bool, pace time.Duration, yield func(*models.Response, error) bool) {
	if stream && resp != nil && resp.Content != nil {
		for _, part := range resp.Content.Parts {
			if part == nil {
				continue
			}
			for word := range strings.SplitAfterSeq(part.Text, " ") { // the pieces joined are the text
				if word == "" {
					continue
				}
				if err := wait(ctx, pace); err != nil {
					yield(nil, err)
					return
				}
				partial := &models.Response{
					Content: &genai.Content{
						Role: genai.RoleModel, Parts: []*genai.Part{{Text: word, Thought: part.Thought}},
					},
					ModelVersion: resp.ModelVersion, Partial: true,
				}
				if !yield(partial, nil) {
					return
				}
			}
		}
	}
	yield(resp, nil)
}
