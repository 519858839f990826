package scripted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"google.golang.org/genai"
)

// Record is one call of a scripted model, as observers get it and as one line of the journal. It holds no contents.
type Record struct {
	Time time.Time `json:"time"`
	// Model is the script's name.
	Model string `json:"model,omitempty"`
	Agent string `json:"agent"`
	// Turn counts from 1; see the package comment.
	Turn int `json:"turn"`
	// Answer is the chosen step: the agent's name in the script, a slash, and the step's id or position from 1.
	Answer string `json:"answer"`
	// Invocation is that of the request.
	Invocation string `json:"invocation,omitempty"`
	// View is the shape of the conversation, a line for each content: its role, and "call:ID" and "response:ID" for the
	// calls and responses among its parts, in order.
	View []string `json:"view,omitempty"`
	// Digest is equal for equal conversations.
	Digest string `json:"digest,omitempty"`
}

// shape fills in what was asked, without a word of it.
func (r *Record) shape(contents []*genai.Content) {
	digest := sha256.New()
	_ = json.NewEncoder(digest).Encode(contents) // what is no JSON is asked by nobody
	r.Digest = hex.EncodeToString(digest.Sum(nil)[:16])
	for _, c := range contents {
		if c == nil {
			continue
		}
		line := c.Role
		for _, p := range c.Parts {
			switch {
			case p == nil:
			case p.FunctionCall != nil:
				line += " call:" + p.FunctionCall.ID
			case p.FunctionResponse != nil:
				line += " response:" + p.FunctionResponse.ID
			}
		}
		r.View = append(r.View, line)
	}
}

// observed says whether anybody sees the records.
func (o options) observed() bool { return o.onCall != nil || o.journal != "" }

func (o options) note(r Record) error {
	if o.onCall != nil {
		o.onCall(r)
	}
	if o.journal == "" {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode journal line: %w", err)
	}
	// Opened for each call and written at once: several processes append to the same file, and any may be killed.
	file, err := os.OpenFile(o.journal, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open journal: %w", err)
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		_ = file.Close()
		return fmt.Errorf("write journal: %w", err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("close journal: %w", err)
	}
	return nil
}
