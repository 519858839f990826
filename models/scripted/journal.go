package scripted

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
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
}

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
