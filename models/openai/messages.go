package openai

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"
	"google.golang.org/genai"

	"tarry/models"
)

// messages translates a conversation. The protocol wants the answers to an assistant's calls directly after it, one
// message for each, so within a content tool messages come before anything that a person said.
func (m *Model) messages(req *models.Request) ([]openai.ChatCompletionMessageParamUnion, error) {
	var out []openai.ChatCompletionMessageParamUnion
	if req.Config != nil {
		if text := plainText(req.Config.SystemInstruction); text != "" {
			out = append(out, openai.SystemMessage(text))
		}
	}
	var ids callIDs
	for _, content := range models.EnsureUserTurn(req.Contents) {
		if content == nil {
			continue
		}
		if content.Role == genai.RoleModel {
			message, ok, err := m.assistant(content, &ids)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, message)
			}
			continue
		}
		messages, err := m.user(content, &ids)
		if err != nil {
			return nil, err
		}
		out = append(out, messages...)
	}
	return out, nil
}

func (m *Model) assistant(content *genai.Content, ids *callIDs) (openai.ChatCompletionMessageParamUnion, bool, error) {
	var (
		message openai.ChatCompletionAssistantMessageParam
		text    strings.Builder
	)
	for _, part := range content.Parts {
		switch {
		case part == nil || part.Thought:
		case part.FunctionCall != nil:
			call := part.FunctionCall
			args := []byte("{}")
			if len(call.Args) > 0 {
				var err error
				if args, err = json.Marshal(call.Args); err != nil {
					return openai.ChatCompletionMessageParamUnion{}, false, m.refuse("a function call has arguments that are not JSON")
				}
			}
			message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
				OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
					ID: ids.called(call.ID, call.Name),
					Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{
						Name: call.Name, Arguments: string(args),
					},
				},
			})
		default:
			text.WriteString(part.Text)
		}
	}
	if text.Len() == 0 && len(message.ToolCalls) == 0 {
		return openai.ChatCompletionMessageParamUnion{}, false, nil
	}
	if text.Len() > 0 {
		message.Content.OfString = openai.String(text.String())
	}
	return openai.ChatCompletionMessageParamUnion{OfAssistant: &message}, true, nil
}

func (m *Model) user(content *genai.Content, ids *callIDs) ([]openai.ChatCompletionMessageParamUnion, error) {
	var (
		results []openai.ChatCompletionMessageParamUnion
		said    []openai.ChatCompletionContentPartUnionParam
		texts   []string
	)
	for _, part := range content.Parts {
		switch {
		case part == nil || part.Thought:
		case part.FunctionResponse != nil:
			answer := part.FunctionResponse
			body := []byte("{}")
			if len(answer.Response) > 0 {
				var err error
				if body, err = json.Marshal(answer.Response); err != nil {
					return nil, m.refuse("a function response is not JSON")
				}
			}
			results = append(results, openai.ToolMessage(string(body), ids.answered(answer.ID, answer.Name)))
		case part.InlineData != nil:
			if !strings.HasPrefix(part.InlineData.MIMEType, "image/") {
				return nil, m.refuse("inline data other than images has no place in Chat Completions")
			}
			said = append(said, image("data:"+part.InlineData.MIMEType+";base64,"+
				base64.StdEncoding.EncodeToString(part.InlineData.Data)))
		case part.FileData != nil:
			web := strings.HasPrefix(part.FileData.FileURI, "https://")
			if !web || !strings.HasPrefix(part.FileData.MIMEType, "image/") {
				return nil, m.refuse("file data other than https links to images has no place in Chat Completions")
			}
			said = append(said, image(part.FileData.FileURI))
		case part.Text != "":
			texts = append(texts, part.Text)
			said = append(said, openai.TextContentPart(part.Text))
		}
	}
	switch {
	case len(said) == 0:
		return results, nil
	case len(texts) == len(said):
		// A plain string: many compatible servers know no lists of parts.
		return append(results, openai.UserMessage(strings.Join(texts, "\n"))), nil
	default:
		return append(results, openai.UserMessage(said)), nil
	}
}

func image(url string) openai.ChatCompletionContentPartUnionParam {
	return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: url})
}

func plainText(content *genai.Content) string {
	if content == nil {
		return ""
	}
	var texts []string
	for _, part := range content.Parts {
		if part != nil && part.Text != "" && !part.Thought {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// callIDs gives calls an id that have none, since the protocol ties an answer to its call by id only. Answers without
// an id then take the oldest open call of their name.
type callIDs struct {
	made int
	open []openCall
}

type openCall struct{ id, name string }

func (c *callIDs) called(id, name string) string {
	if id == "" {
		c.made++
		id = fmt.Sprintf("call_%d", c.made)
		c.open = append(c.open, openCall{id, name})
	}
	return id
}

func (c *callIDs) answered(id, name string) string {
	if id != "" {
		return id
	}
	for i, call := range c.open {
		if call.name == name {
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			return call.id
		}
	}
	return "call_unknown"
}
