package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/genai"

	"tarry/models"
)

// keyword is a model without a mind: it looks for the last word of the question among the reports, and repeats what it
// finds. A model of one's own implements this one method; what it gets and gives are genai's types, as in ADK.
type keyword struct{}

func keywordFactory(context.Context, string) (models.Model, error) { return keyword{}, nil }

// GenerateContent implements [models.Model].
func (keyword) GenerateContent(_ context.Context, req *models.Request, _ bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		if len(req.Contents) == 0 {
			yield(nil, &models.Error{Kind: models.KindInvalid, Provider: "keyword", Message: "nothing was said"})
			return
		}
		last := req.Contents[len(req.Contents)-1]
		yield(&models.Response{Content: &genai.Content{Role: genai.RoleModel, Parts: []*genai.Part{answer(last)}}, TurnComplete: true}, nil)
	}
}

func answer(last *genai.Content) *genai.Part {
	for _, part := range last.Parts {
		if r := part.FunctionResponse; r != nil {
			if problem, failed := r.Response["error"]; failed {
				return &genai.Part{Text: fmt.Sprintf("I could not read it: %v", problem)}
			}
			return &genai.Part{Text: fmt.Sprintf("%v: %v", r.Response["title"], r.Response["text"])}
		}
	}
	words := strings.FieldsFunc(last.Parts[0].Text, func(r rune) bool { return strings.ContainsRune(" ?.!", r) })
	title := "index"
	if len(words) > 0 {
		title = strings.ToLower(words[len(words)-1])
	}
	return &genai.Part{FunctionCall: &genai.FunctionCall{Name: "read_report", Args: map[string]any{"title": title}}}
}
