package function

import (
	"fmt"
	"slices"

	"tarry/agent"
)

// Option changes a tool that is being made.
type Option func(*settings) error

type settings struct {
	idempotent  bool
	confirm     bool
	longRunning bool
	credentials []agent.Auth
}

// Idempotent says that the function may run again with the same arguments when it is not known how an earlier attempt
// ended: it reads only, or it uses the call's id as its idempotency key.
func Idempotent() Option {
	return func(s *settings) error {
		s.idempotent = true
		return nil
	}
}

// RequireConfirmation says that each call waits until a person has approved it (ADK's require_confirmation). To ask only for
// some calls, the function returns a [tools.ConfirmationRequiredError].
//
// An approved call is tried once: when it is not known how it ended, the model is told so, also if it is [Idempotent].
func RequireConfirmation() Option {
	return func(s *settings) error {
		s.confirm = true
		return nil
	}
}

// LongRunning says that the function begins work which others finish (ADK's LongRunningFunctionTool): what it returns is an
// interim result, and the run waits for the final one. See [tools.LongRunning].
func LongRunning() Option {
	return func(s *settings) error {
		s.longRunning = true
		return nil
	}
}

// Credential declares a credential that the function gets with [tarry/auth.Token] under its key, or puts on a request with
// [tarry/auth.Authorize]. One that a person types in needs the resource that it is sent to. May be given several
// times, with different keys.
func Credential(a agent.Auth) Option {
	return func(s *settings) error {
		switch {
		case a.Key == "":
			return fmt.Errorf("credential has no key")
		case a.Type == agent.AuthMCP:
			return fmt.Errorf("credential %q: type %s needs an MCP server to ask", a.Key, a.Type)
		case a.Typed() && a.Resource == "":
			return fmt.Errorf("credential %q: no resource; name the URL that the key is sent to", a.Key)
		case slices.ContainsFunc(s.credentials, func(b agent.Auth) bool { return a.Key == b.Key }):
			return fmt.Errorf("two credentials have the key %q", a.Key)
		}
		if problems := a.Problems(); len(problems) > 0 {
			return fmt.Errorf("credential %q: %s: %s", a.Key, problems[0].Field, problems[0].Problem)
		}
		s.credentials = append(s.credentials, a)
		return nil
	}
}
