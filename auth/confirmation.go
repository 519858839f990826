package auth

import (
	"errors"

	"tarry/agent"
)

// TypeConfirmation is the type of a [Need] that is no login: a person is to approve one call, with the arguments that it
// has, before it runs.
const TypeConfirmation = "confirmation"

// ErrClosed says that nobody waits for an answer any more: it was given before, or too late.
var ErrClosed = errors.New("auth: the request does not wait any more")

// ErrNoRequest says that there is no request of that id, or none that the caller may know of.
var ErrNoRequest = errors.New("auth: there is no such request")

// Confirmation is what a person is asked to approve.
type Confirmation struct {
	// Args are the call's, as JSON text. What is shown is what runs: an approval of other text is none.
	Args string `json:"args"`
	Hint string `json:"hint,omitempty"`
	// Payload is what the tool offers to be filled in, as JSON text; empty when it offers nothing.
	Payload string `json:"payload,omitempty"`
}

// Consent is what came back beside a person's approval or rejection; which of them it was, the request's status says.
type Consent struct {
	// Payload is JSON text; empty when none came.
	Payload string `json:"payload,omitempty"`
}

// ConfirmationSlot is where the approvals of one call live. No grant is ever in it, and no two calls share one. own is for
// those that the tool's code asks for, which the definition's do not answer.
func ConfirmationSlot(owner agent.Owner, call string, own bool) Slot {
	s := Slot{Owner: owner, Issuer: TypeConfirmation, Client: "call:" + call}
	if own {
		s.Resource = "tool"
	}
	return s
}

// Login says whether the need is met by a login: the other types are answered by what the person says to one call.
func (n Need) Login() bool {
	switch n.Type {
	case TypeInput, TypeConfirmation, TypeQuestion, TypeResult:
		return false
	}
	return true
}
