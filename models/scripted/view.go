package scripted

import (
	"encoding/json"
	"regexp"
	"strings"

	"google.golang.org/genai"

	"tarry/models"
)

// contextPrefix begins what ADK's view shows of other agents.
const contextPrefix = "For context:"

// view is what a request says that a script can ask about.
type view struct {
	agent       string
	turn        int    // from 1
	userText    string // the person's latest
	instruction string
	news        string   // all texts and responses since the agent's last turn, lower case
	newTools    []string // functions whose responses are among them
	responses   []*genai.FunctionResponse
}

func newView(req *models.Request) *view {
	v := &view{agent: req.Agent, turn: 1}
	if req.Config != nil {
		v.instruction = text(req.Config.SystemInstruction)
	}
	if v.agent == "" {
		v.agent = agentInInstruction(v.instruction)
	}
	spoken := -1 // where the agent's last turn is
	for i, content := range req.Contents {
		if content != nil && content.Role == genai.RoleModel {
			spoken = i
		}
	}
	var news strings.Builder
	for i, content := range req.Contents {
		if content == nil {
			continue
		}
		if content.Role == genai.RoleModel {
			v.turn++
			continue
		}
		if said, ok := personsText(content); ok {
			v.userText, v.turn = said, 1
		}
		for _, part := range content.Parts {
			if part != nil && part.FunctionResponse != nil {
				v.responses = append(v.responses, part.FunctionResponse)
			}
			if i < spoken {
				continue // encoding what is old takes the longer the longer the conversation is
			}
			switch {
			case part == nil:
			case part.FunctionResponse != nil:
				v.newTools = append(v.newTools, part.FunctionResponse.Name)
				if encoded, err := json.Marshal(part.FunctionResponse.Response); err == nil {
					news.Write(encoded)
				}
			default:
				news.WriteString(part.Text)
			}
			news.WriteByte('\n')
		}
	}
	v.news = strings.ToLower(news.String())
	return v
}

func (v *view) holds(w *When) bool {
	if w.Turn != 0 && w.Turn != v.turn {
		return false
	}
	if w.Contains != "" && !strings.Contains(v.news, strings.ToLower(w.Contains)) {
		return false
	}
	if w.Instruction != "" && !strings.Contains(v.instruction, w.Instruction) {
		return false
	}
	if w.LastTool == "" {
		return true
	}
	for _, name := range v.newTools {
		if name == w.LastTool {
			return true
		}
	}
	return false
}

// personsText tells a person's message from function responses, from other agents' messages, and from the sentences
// that models.EnsureUserTurn appends.
func personsText(content *genai.Content) (string, bool) {
	for _, part := range content.Parts {
		if part != nil && part.FunctionResponse != nil {
			return "", false
		}
	}
	said := text(content)
	switch {
	case said == models.ContinueText, said == models.StartText, strings.HasPrefix(said, contextPrefix):
		return "", false
	default:
		return said, said != ""
	}
}

func text(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var texts []string
	for _, part := range content.Parts {
		if part != nil && part.Text != "" && !part.Thought {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// agentInInstruction finds the name in the sentence that ADK puts into the system instruction, for callers that set no
// models.Request.Agent.
func agentInInstruction(instruction string) string {
	found := regexp.MustCompile(`internal name is "([^"]+)"`).FindStringSubmatch(instruction)
	if found == nil {
		return ""
	}
	return found[1]
}
