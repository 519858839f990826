package adk

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/genai"

	"tarry/agent"
)

// maxParts bounds the parts of a message.
const maxParts = 1000

// runRequest is ADK's RunAgentRequest; fields that it does not have are ignored.
type runRequest struct {
	app, user, session string
	message            message
	stateDelta         map[string]any
	// streaming asks for pieces of answers while models give them.
	streaming bool
	// request tells bodies apart that say something: see [stream.Cursor].
	request string
	key     messageKey
	// latest is functionCallEventId: the last event that the client has seen ask for something. It is a hint.
	latest     string
	invocation string
}

// message is what a person or client says: words, replies to what was asked, or both.
type message struct {
	parts   []*genai.Part
	replies []reply
}

// reply is a functionResponse as it came.
type reply struct {
	id, name string
	response any
	// willContinue says that more will come: the response is an interim result.
	willContinue bool
}

func decodeRun(body json.RawMessage) (runRequest, error) {
	in, err := object(body)
	if err != nil {
		return runRequest{}, invalid("the body is not a JSON object")
	}
	var out runRequest
	for field, to := range map[string]*string{
		"appName": &out.app, "userId": &out.user, "sessionId": &out.session,
		"functionCallEventId": &out.latest, "invocationId": &out.invocation,
	} {
		if err := decode(in[field], to); err != nil {
			return out, invalid("%s is not a string", field)
		}
	}
	if err := decode(in["stateDelta"], &out.stateDelta); err != nil {
		return out, invalid("stateDelta is not an object")
	}
	if out.stateDelta, err = clientState("stateDelta", out.stateDelta); err != nil {
		return out, err
	}
	if err := decode(in["streaming"], &out.streaming); err != nil {
		return out, invalid("streaming is neither true nor false")
	}
	out.request = digest(in["newMessage"])
	if out.session == "" {
		return out, invalid("sessionId is missing; create a session first")
	}
	out.message, err = decodeMessage(in["newMessage"])
	return out, err
}

func decodeMessage(raw json.RawMessage) (message, error) {
	var out message
	content, err := object(raw)
	if err != nil {
		return out, invalid("newMessage is not an object with role and parts")
	}
	var parts []json.RawMessage
	if err := decode(content["parts"], &parts); err != nil {
		return out, invalid("newMessage.parts is not a list")
	}
	if len(parts) > maxParts {
		return out, invalid("newMessage has %d parts, at most %d are taken", len(parts), maxParts)
	}
	for i, raw := range parts {
		fields, err := object(raw)
		if err != nil {
			return out, invalid("newMessage.parts[%d] is not an object", i)
		}
		switch {
		case present(fields["functionCall"]):
			return out, invalid("newMessage.parts[%d].functionCall: only agents call functions", i)
		case present(fields["functionResponse"]):
			r, err := decodeReply(fields["functionResponse"])
			if err != nil {
				return out, invalid("newMessage.parts[%d].functionResponse is not {id, name, response}", i)
			}
			out.replies = append(out.replies, r)
		default:
			part, err := decodePart(fields)
			if err != nil {
				return out, invalid("newMessage.parts[%d] is not text, inlineData or fileData as ADK has them", i)
			}
			if part != nil {
				out.parts = append(out.parts, part)
			}
		}
	}
	return out, nil
}

// digest is of the words, not of how they are written.
func digest(raw json.RawMessage) string {
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return ""
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:8])
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func decodeReply(raw json.RawMessage) (reply, error) {
	var r reply
	fields, err := object(raw)
	if err != nil {
		return r, err
	}
	for field, to := range map[string]any{"id": &r.id, "name": &r.name, "response": &r.response, "willContinue": &r.willContinue} {
		if err := decode(fields[field], to); err != nil {
			return r, err
		}
	}
	return r, nil
}

// decodePart keeps what a person can send and drops the rest; nil means that nothing was left.
func decodePart(fields map[string]json.RawMessage) (*genai.Part, error) {
	var p genai.Part
	if err := decode(fields["text"], &p.Text); err != nil {
		return nil, err
	}
	if present(fields["inlineData"]) {
		data, err := object(fields["inlineData"])
		if err != nil {
			return nil, err
		}
		p.InlineData = &genai.Blob{}
		var text string
		if err := decode(data["data"], &text); err != nil {
			return nil, err
		}
		// Python's clients write URL-safe base64, JavaScript's the standard one.
		text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
		if p.InlineData.Data, err = base64.RawStdEncoding.DecodeString(text); err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		if err := decode(data["mimeType"], &p.InlineData.MIMEType); err != nil {
			return nil, err
		}
	}
	if present(fields["fileData"]) {
		data, err := object(fields["fileData"])
		if err != nil {
			return nil, err
		}
		p.FileData = &genai.FileData{}
		for field, to := range map[string]*string{"fileUri": &p.FileData.FileURI, "mimeType": &p.FileData.MIMEType} {
			if err := decode(data[field], to); err != nil {
				return nil, err
			}
		}
	}
	if p.Text == "" && p.InlineData == nil && p.FileData == nil {
		return nil, nil //nolint:nilnil // nothing to say is no error
	}
	return &p, nil
}

// content is the words of m, without the replies.
func (m message) content() *genai.Content {
	return &genai.Content{Role: genai.RoleUser, Parts: m.parts}
}

// notAsked explains a reply by a name that clients have nothing to reply to.
func notAsked(name string) error {
	switch {
	case agent.Reserved(name):
		return invalid("functionResponse %q: the name is reserved", brief(name))
	}
	return invalid("functionResponse %q: no call of a long-running tool has that id; other tools answer their calls themselves, and a client replies to %s, %s and %s only", brief(name), agent.RequestCredential, agent.RequestConfirmation, agent.RequestInput)
}

// brief bounds what an error repeats of a client's words.
func brief(s string) string {
	const most = 100
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
