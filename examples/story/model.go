package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/genai"

	"tarry/models"
)

// rhyme is a model without a mind, so that the example runs without a key: each agent has one line. The first story is sad,
// the second is not.
type rhyme struct{}

func rhymeFactory(context.Context, string) (models.Model, error) { return rhyme{}, nil }

// GenerateContent implements [models.Model].
func (rhyme) GenerateContent(_ context.Context, req *models.Request, _ bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		yield(&models.Response{Content: genai.NewContentFromText(line(req), genai.RoleModel), TurnComplete: true}, nil)
	}
}

func line(req *models.Request) string {
	said := strings.ToLower(words(req.Contents))
	again := strings.Contains(said, "[tone_check] said: negative")
	story := "The cat was sad."
	if again {
		story = "The cat was glad."
	}
	if strings.Contains(said, "write of dogs") { // the style guide
		story = strings.ReplaceAll(story, "cat", "dog")
	}
	switch req.Agent {
	case "story_generator", "reviser":
		return story
	case "critic":
		return "It could rhyme."
	case "grammar_check":
		return "Nothing to correct."
	case "tone_check":
		if strings.Contains(words([]*genai.Content{req.Config.SystemInstruction}), "sad") {
			return "negative"
		}
		return "positive"
	default:
		return fmt.Sprintf("%s has nothing to say.", req.Agent)
	}
}

func words(contents []*genai.Content) string {
	var out strings.Builder
	for _, c := range contents {
		for _, p := range c.Parts {
			out.WriteString(p.Text + "\n")
		}
	}
	return out.String()
}
