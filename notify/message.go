package notify

import (
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"tarry/auth"
)

// Delivery is one webhook for one endpoint.
type Delivery struct {
	// ID is the webhook-id: the same at each attempt.
	ID       string
	Endpoint string
	Type     string
	// At is when it happened.
	At time.Time
	// Attempts is how often it was tried before.
	Attempts int
	// Request is what it is about, as it is now.
	Request auth.Request
}

// body is what an endpoint gets. It only ever gains fields.
type body struct {
	Type      string    `json:"type"`
	Timestamp time.Time `json:"timestamp"`
	Data      data      `json:"data"`
}

type data struct {
	App        string   `json:"app"`
	User       string   `json:"user"`
	Session    string   `json:"session"`
	Invocation string   `json:"invocation"`
	Request    string   `json:"request"`
	Agent      string   `json:"agent,omitempty"`
	Tool       string   `json:"tool,omitempty"`
	Provider   string   `json:"provider,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
	Link       string   `json:"link"`
	Deadline   string   `json:"deadline,omitempty"`
}

// render makes the body. Nothing in it changes between attempts.
func render(d Delivery, publicURL string) ([]byte, error) {
	r := d.Request
	out := body{Type: d.Type, Timestamp: d.At.UTC(), Data: data{
		App: r.Owner.App, User: r.Owner.User, Session: r.Session, Invocation: r.Invocation, Request: r.ID, Agent: r.Agent, Tool: r.Need.Tool,
		Link: r.Link(publicURL),
	}}
	if r.Need.Login() {
		out.Data.Scopes = r.Need.Own()
		if u, err := url.Parse(r.Need.Slot.Issuer); err == nil {
			out.Data.Provider = u.Host
		}
	}
	if !r.Deadline.IsZero() {
		out.Data.Deadline = r.Deadline.UTC().Format(time.RFC3339)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode webhook: %w", err)
	}
	return raw, nil
}
