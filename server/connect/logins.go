package connect

import (
	"context"
	"errors"
	"time"

	"tarry/auth"
	"tarry/server/signin"
)

// Logins is the machinery behind the pages. Safe for concurrent use. Its errors are the ones below, possibly wrapped;
// any other is an internal error. They hold no secret: they are logged.
type Logins interface {
	// Page describes a request that access allows; [ErrUnknown] for any other.
	Page(ctx context.Context, access auth.Access, requestID string) (Page, error)
	// Begin starts a flow for a pending request. shown is the page's [Page.Shown], from the form: anything, or empty.
	Begin(ctx context.Context, access auth.Access, requestID, shown string) (Started, error)
	// Complete takes what the provider sent back. It must go on when ctx ends: the browser may be gone. Beside an error the
	// result says what the caller may know: RequestID makes the page link back, Outcome says whether the request is open.
	Complete(ctx context.Context, access auth.Access, c Callback) (Result, error)
	// Account takes what the person said to a [Result.Change]; it wants the flow's cookie and person as Complete does.
	Account(ctx context.Context, access auth.Access, c Choice) (Result, error)
	// Park keeps what the provider sent back to the browser of a service's user, and returns where to send that browser. Nothing
	// is exchanged before the service claims it.
	Park(ctx context.Context, caller signin.Principal, c Callback) (redirect string, err error)
	// Answer ends a request that no provider answers. A form that does not fit is a [*FormError], and the request waits as before.
	Answer(ctx context.Context, access auth.Access, requestID string, a Answer) (Result, error)
}

// Page is what is shown of a request.
type Page struct {
	RequestID string
	App       string
	User      string
	Agent     string
	// Tool and Toolset may be empty; a toolset asks before it can list its tools.
	Tool    string
	Toolset string
	// ProviderHost is where the person logs in, ServerHost where the token will be sent; the latter may be empty.
	ProviderHost string
	ServerHost   string
	Scopes       []string
	Status       auth.Status
	// Correlator is ADK's public state.
	Correlator string
	Created    time.Time
	// Deadline is zero when there is none.
	Deadline time.Time
	// Input says that the request is no login: ServerHost wants something else. Inputs is what, while the request is open.
	Input  bool
	Inputs []Input
	// Question is set when a tool of the app asks, or waits for its result; Input is set then too.
	Question *Question
	// Confirmation is set when the request is for a person's approval of a call.
	Confirmation *Confirmation
	// Key is set when the person is to type a credential in.
	Key *Key
	// ByDevice says that the person answers on another device; Device is the code for it, nil until it was asked for.
	ByDevice bool
	Device   *Device
	// Runs is how many sessions wait for this login; 0 counts as 1. Askers are what asks in them, Agent and Tool among them.
	Runs   int
	Askers []Asker
	// Shown names the newest of what waits, for Begin: a refusal is about what the person saw.
	Shown string
}

// Asker is an agent with a tool of its that needs the login.
type Asker struct{ Agent, Tool, Toolset string }

// maxAskers bounds the list on a page.
const maxAskers = 20

// Listed are the askers to show when there are several.
func (p Page) Listed() []Asker {
	if len(p.Askers) < 2 {
		return nil
	}
	return p.Askers[:min(len(p.Askers), maxAskers)]
}

// Unlisted is how many more there are.
func (p Page) Unlisted() int { return max(0, len(p.Askers)-maxAskers) }

// Started is a flow that waits for its browser to come back.
type Started struct {
	// Device says that there is no address to send the browser to: the page shows a code.
	Device bool
	// RedirectURL is the provider's authorization endpoint with all parameters. It holds the provider-facing state.
	RedirectURL string
	// CookieName is unique to the flow; the __Host- prefix is added where it has none and browsers take it.
	CookieName string
	Cookie     auth.Secret
	// Expires is when the flow ends.
	Expires time.Time
	// Correlator is ADK's public state.
	Correlator string
}

// Callback is a provider's authorization response (RFC 6749 section 4.1.2) with the browser that brought it.
type Callback struct {
	// Digest is the last element of the path, made of the issuer.
	Digest string
	State  auth.Secret
	// Code is zero when there is an Error; never are both set, or none.
	Code auth.Secret
	// Iss is RFC 9207's parameter.
	Iss        string
	IssPresent bool
	// Error is one of the registered codes, or "other".
	Error string
	// Cookie returns a cookie by the name that Started had; zero when the browser has none.
	Cookie func(name string) auth.Secret
}

// Result is what came of a callback.
type Result struct {
	// Outcome is the request's status afterwards.
	Outcome   auth.Status
	RequestID string
	App       string
	Agent     string
	// ProviderHost may be empty.
	ProviderHost string
	// Correlator goes back to an ADK client with its ticket.
	Correlator string
	// Input and Confirmation say that the request was no login.
	Input        bool
	Confirmation bool
	// Key says that it was for a credential that is typed in.
	Key bool
	// Change is set while the login waits for the person to confirm its account.
	Change *Change
}

// Errors of [Logins].
var (
	// ErrUnknown: there is no such request or state, or the caller may not know of it.
	ErrUnknown = errors.New("connect: unknown")
	// ErrExpired: the flow, the request or its deadline is over.
	ErrExpired = errors.New("connect: expired")
	// ErrCancelled: nobody waits for the request any more.
	ErrCancelled = errors.New("connect: cancelled")
	// ErrWrongBrowser: the flow's cookie is missing or another's.
	ErrWrongBrowser = errors.New("connect: another browser")
	// ErrWrongUser: the request is somebody else's.
	ErrWrongUser = errors.New("connect: another user")
	// ErrFinished: the flow or request was answered before; the result's Outcome says how.
	ErrFinished = errors.New("connect: finished")
	// ErrMoved: the login is asked for at another provider by now; the person must see that before it begins.
	ErrMoved = errors.New("connect: moved")
	// ErrProvider: the provider refused or answered nonsense.
	ErrProvider = errors.New("connect: provider")
	// ErrTooMany: too many flows of this request are open.
	ErrTooMany = errors.New("connect: too many")
	// ErrTryAgain: a passing failure here; the same link works.
	ErrTryAgain = errors.New("connect: try again")
	// ErrMisconfigured: no login can work before an operator changes something. See [MisconfiguredError].
	ErrMisconfigured = errors.New("connect: misconfigured")
)

// MisconfiguredError is an [ErrMisconfigured] with a text for the person, who hands it to an operator. The text is ours:
// it quotes no provider.
type MisconfiguredError struct{ Text string }

// Error implements error.
func (e *MisconfiguredError) Error() string { return ErrMisconfigured.Error() + ": " + e.Text }

// Unwrap returns [ErrMisconfigured].
func (e *MisconfiguredError) Unwrap() error { return ErrMisconfigured }
