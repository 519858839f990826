package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
)

// ErrUnanswered says that a call in a view has no response, or a response no call (invariant I9).
var ErrUnanswered = errors.New("session: calls and responses do not match")

// Reader is the agent whose model reads a view.
type Reader struct {
	Agent string
	// Branch is the agent's, Scope that of the call that it is behind; empty for most.
	Branch, Scope string
	// Include is ADK's include_contents; "none" leaves earlier turns out.
	Include string
}

const includeNone = "none"

// Contents is what a model sees of a view, with ADK's rules: other agents' words are retold as a user's, questions to people
// are left out, branches of siblings and agents behind tools are invisible, and each call is followed by exactly one
// response, in call order, however late and in whatever order the results came.
func Contents(view []*Record, reader Reader) ([]*genai.Content, error) {
	agentName := reader.Agent
	visible := visibleTo(view, reader)
	if reader.Include == includeNone {
		visible = currentTurn(visible, agentName)
	}
	responses := responsesTo(visible, agentName)
	var out []*genai.Content
	used := 0
	for _, r := range visible {
		switch {
		case !own(r, agentName):
			if told := retold(r); len(told.Parts) > 1 {
				out = append(out, told)
			}
		case slices.ContainsFunc(r.Content.Parts, isResponse): // placed behind its call
			if words := without(r.Content.Parts); len(words) > 0 {
				out = append(out, &genai.Content{Role: role(r), Parts: words})
			}
		default:
			out = append(out, &genai.Content{Role: role(r), Parts: r.Content.Parts})
			answer, err := answers(r, responses)
			if err != nil {
				return nil, err
			}
			if answer != nil {
				out = append(out, answer)
				used += len(answer.Parts)
			}
		}
	}
	if used != len(responses) {
		return nil, fmt.Errorf("%w: %d responses have no call", ErrUnanswered, len(responses)-used)
	}
	return out, nil
}

// responsesTo finds the responses to an agent's calls. What a person sends counts only for a call of the agent that has no
// response: nobody outside can change a tool's result, or break the conversation with an answer to nothing.
func responsesTo(visible []*Record, agentName string) map[string]*genai.FunctionResponse {
	out := make(map[string]*genai.FunctionResponse, len(visible)/2)
	var said []*genai.FunctionResponse
	for _, r := range visible {
		switch r.Author {
		case agentName:
			for _, p := range r.Content.Parts {
				if p.FunctionResponse != nil {
					out[p.FunctionResponse.ID] = p.FunctionResponse
				}
			}
		case agent.UserAuthor:
			said = append(said, r.Responses()...)
		}
	}
	if len(said) == 0 {
		return out
	}
	open := map[string]bool{}
	for _, r := range visible {
		if r.Author == agentName {
			for _, call := range r.Calls() {
				open[call.ID] = true
			}
		}
	}
	for _, response := range said {
		if open[response.ID] && out[response.ID] == nil {
			out[response.ID] = response
		}
	}
	return out
}

func isResponse(p *genai.Part) bool { return p.FunctionResponse != nil }

// without leaves function responses out.
func without(parts []*genai.Part) []*genai.Part {
	if !slices.ContainsFunc(parts, func(p *genai.Part) bool { return !isResponse(p) }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(parts), isResponse)
}

func visibleTo(view []*Record, reader Reader) []*Record {
	return slices.DeleteFunc(slices.Clone(view), func(r *Record) bool {
		return r.Content == nil || len(r.Content.Parts) == 0 || r.Partial || question(r) || r.Kind == KindNotice || r.Kind == KindInterim ||
			r.IsolationScope != reader.Scope || !inBranch(reader.Branch, r.Branch)
	})
}

// question says whether r asks a person, or is what a person says to that. A model that makes a call of such a name asks
// nobody: its answer stays, with its other calls, or their responses would answer nothing.
func question(r *Record) bool { return r.Kind == KindRequest || r.Kind == KindUser && r.Asks() }

// inBranch: an agent sees its own branch and those above it, and one that is in no branch sees all of them, as in ADK: so
// the agent after a parallel one reads what its children said.
func inBranch(branch, of string) bool {
	return branch == "" || of == "" || branch == of || strings.HasPrefix(branch, of+".")
}

// currentTurn keeps what came since somebody else spoke last, as ADK's include_contents: none.
func currentTurn(view []*Record, agentName string) []*Record {
	for i := len(view) - 1; i >= 0; i-- {
		if !own(view[i], agentName) || view[i].Author == agent.UserAuthor {
			return view[i:]
		}
	}
	return view
}

func own(r *Record, agentName string) bool {
	return r.Author == agent.UserAuthor || r.Author == agentName
}

func role(r *Record) string {
	if r.Author == agent.UserAuthor {
		return genai.RoleUser
	}
	return genai.RoleModel
}

func answers(r *Record, responses map[string]*genai.FunctionResponse) (*genai.Content, error) {
	calls := r.Calls()
	if len(calls) == 0 {
		return nil, nil //nolint:nilnil // no calls, no answer
	}
	content := &genai.Content{Role: genai.RoleUser}
	for _, call := range calls {
		response, ok := responses[call.ID]
		if !ok {
			return nil, fmt.Errorf("%w: call %s of %s has no response", ErrUnanswered, call.ID, r.Author)
		}
		content.Parts = append(content.Parts, &genai.Part{FunctionResponse: response})
	}
	return content, nil
}

// retold turns another agent's event into a user's words, so that no model takes them for its own.
func retold(r *Record) *genai.Content {
	parts := []*genai.Part{{Text: "For context:"}}
	for _, p := range r.Content.Parts {
		switch {
		case p.Thought:
		case p.Text != "":
			parts = append(parts, &genai.Part{Text: fmt.Sprintf("[%s] said: %s", r.Author, p.Text)})
		case p.FunctionCall != nil:
			parts = append(parts, &genai.Part{Text: fmt.Sprintf("[%s] called tool `%s` with parameters: %s", r.Author, p.FunctionCall.Name, compact(p.FunctionCall.Args))})
		case p.FunctionResponse != nil:
			parts = append(parts, &genai.Part{Text: fmt.Sprintf("[%s] `%s` tool returned result: %s", r.Author, p.FunctionResponse.Name, compact(p.FunctionResponse.Response))})
		default:
			parts = append(parts, p)
		}
	}
	return &genai.Content{Role: genai.RoleUser, Parts: parts}
}

func compact(v map[string]any) string {
	body, err := json.Marshal(v)
	if err != nil || v == nil {
		return "{}"
	}
	return string(body)
}
