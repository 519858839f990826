package activities

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
	"tarry/models"
)

// The tags of ADK's PlanReActPlanner.
const (
	tagPlan   = "/*PLANNING*/"
	tagReplan = "/*REPLANNING*/"
	tagReason = "/*REASONING*/"
	tagAct    = "/*ACTION*/"
	tagAnswer = "/*FINAL_ANSWER*/"
)

// planning is what a model without thoughts of its own is told.
func planning() string {
	return strings.Join([]string{
		"Work in three steps: make a plan, carry it out with the tools that you have, then give one final answer. Prefer what the tools and the conversation say to what you remember.",
		"Write the plan under " + tagPlan + ", as a numbered list that covers all of the request and uses only tools that you have. If the plan does not work out, write a new one under " + tagReplan + ", with what you have learnt.",
		"Call tools under " + tagAct + ". Between calls, write under " + tagReason + " what you know now and what comes next.",
		"Write the final answer under " + tagAnswer + ", in the form that was asked for. If you cannot answer, say why there, and ask for what is missing.",
	}, "\n")
}

// plan puts the agent's planner into the request; the result is for the system instruction.
func plan(p *agent.Planner, t *turn) (note string, err error) {
	switch {
	case p == nil:
		return "", nil
	case p.Kind == agent.PlannerBuiltIn:
		var thinking genai.ThinkingConfig
		if err := json.Unmarshal(p.ThinkingConfig, &thinking); err != nil {
			return "", &turnError{fmt.Sprintf("planner of agent %s cannot be read", t.request.Agent)}
		}
		t.request.Config.ThinkingConfig = &thinking
		return "", nil
	}
	t.planned = true
	t.request.Contents = aloud(t.request.Contents)
	return planning(), nil
}

// aloud makes words of thoughts: a model that does not think by itself takes none.
func aloud(contents []*genai.Content) []*genai.Content {
	out := slices.Clone(contents)
	for i, c := range out {
		if !slices.ContainsFunc(c.Parts, func(p *genai.Part) bool { return p.Thought }) {
			continue
		}
		said := &genai.Content{Role: c.Role, Parts: slices.Clone(c.Parts)}
		for j, part := range said.Parts {
			word := *part
			word.Thought = false
			said.Parts[j] = &word
		}
		out[i] = said
	}
	return out
}

// sorted separates plan and reasoning, which become thoughts, from the answer. Of what follows a group of calls nothing is
// kept: the model wrote it before it had their results.
func sorted(r *models.Response) *models.Response {
	if r.Content == nil {
		return r
	}
	out, content := *r, own(r.Content)
	var parts []*genai.Part
	called := false
	for _, part := range content.Parts {
		switch {
		case part.FunctionCall != nil && part.FunctionCall.Name != "":
			called = true
			parts = append(parts, part)
		case part.FunctionCall != nil:
		case called:
			content.Parts = parts
			out.Content = content
			return &out
		case part.Thought || part.Text == "":
			parts = append(parts, part)
		default:
			parts = append(parts, sortedText(part)...)
		}
	}
	content.Parts = parts
	out.Content = content
	return &out
}

func sortedText(part *genai.Part) (out []*genai.Part) {
	thought := func(text string) *genai.Part {
		for _, tag := range []string{tagPlan, tagReplan, tagReason, tagAct} {
			text = strings.TrimPrefix(text, tag)
		}
		return &genai.Part{Text: text, Thought: true}
	}
	if i := strings.LastIndex(part.Text, tagAnswer); i >= 0 {
		if before := strings.TrimSpace(part.Text[:i]); before != "" {
			out = append(out, thought(before))
		}
		answer := *part
		if answer.Text = strings.TrimSpace(part.Text[i+len(tagAnswer):]); answer.Text != "" {
			out = append(out, &answer)
		}
		return out
	}
	for _, tag := range []string{tagPlan, tagReplan, tagReason, tagAct} {
		if strings.HasPrefix(strings.TrimSpace(part.Text), tag) {
			aside := thought(strings.TrimSpace(part.Text))
			aside.ThoughtSignature = part.ThoughtSignature
			return []*genai.Part{aside}
		}
	}
	return []*genai.Part{part}
}
