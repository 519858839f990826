package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

// New makes a tool of fn. In is a struct (or a map with string keys): its JSON schema is the tool's parameters, with field
// names and optional fields from json tags and descriptions from jsonschema tags. An Out that is no JSON object is wrapped
// as {"result": …}; an Out of type [tools.Result] is used as it is.
//
// fn must be safe for concurrent use. What its errors mean: see [tools.Tool]; an error of no special kind is told to the
// model in fn's own words, cut at 2 KiB, so it must hold no secret. A panic is told without its text.
func New[In, Out any](name, description string, fn func(ctx context.Context, in In) (Out, error), opts ...Option) (tools.Tool, error) {
	if fn == nil {
		return nil, fmt.Errorf("tool %q has no function", name)
	}
	return NewCall(name, description, func(ctx context.Context, _ tools.Call, in In) (Out, error) { return fn(ctx, in) }, opts...)
}

// NewCall is [New] for a function that also wants the call: its id as an idempotency key, or the session's facts and state.
func NewCall[In, Out any](name, description string, fn func(ctx context.Context, call tools.Call, in In) (Out, error), opts ...Option) (tools.Tool, error) {
	if fn == nil {
		return nil, fmt.Errorf("tool %q has no function", name)
	}
	if err := checkName(name); err != nil {
		return nil, err
	}
	var s settings
	for _, opt := range opts {
		if err := opt(&s); err != nil {
			return nil, fmt.Errorf("tool %q: %w", name, err)
		}
	}
	parameters, resolved, err := parameterSchema[In]()
	if err != nil {
		return nil, fmt.Errorf("tool %q: parameters: %w", name, err)
	}
	f := &function[In, Out]{
		declaration: tools.Declaration{
			Name: name, Description: description, Parameters: parameters, Response: responseSchema[Out](), Idempotent: s.idempotent,
		},
		schema:      resolved,
		credentials: s.credentials,
		confirm:     s.confirm,
		longRunning: s.longRunning,
		fn:          fn,
	}
	if len(s.credentials) > 0 {
		return &authorized[In, Out]{f}, nil
	}
	return f, nil
}

func checkName(name string) error {
	switch {
	case !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,127}$`).MatchString(name):
		return fmt.Errorf("tool name %q must be letters, digits, underscores, dots and dashes, at most 128", name)
	case agent.Reserved(name):
		return fmt.Errorf("tool name %q is reserved", name)
	}
	return nil
}

type function[In, Out any] struct {
	declaration tools.Declaration
	schema      *jsonschema.Resolved
	credentials []agent.Auth
	confirm     bool
	longRunning bool
	fn          func(context.Context, tools.Call, In) (Out, error)
}

// authorized is a function with credentials; only then it implements [tools.Authorized].
type authorized[In, Out any] struct{ *function[In, Out] }

// Credentials implements [tools.Authorized].
func (a *authorized[In, Out]) Credentials() []agent.Auth { return slices.Clone(a.credentials) }

// RequiresConfirmation implements [tools.Guarded].
func (f *function[In, Out]) RequiresConfirmation() bool { return f.confirm }

// LongRunning implements [tools.LongRunning].
func (f *function[In, Out]) LongRunning() bool { return f.longRunning }

// Declaration implements [tools.Tool].
func (f *function[In, Out]) Declaration() tools.Declaration { return f.declaration }

// Call implements [tools.Tool].
func (f *function[In, Out]) Call(ctx context.Context, call tools.Call) (tools.Result, error) {
	in, err := decode[In](f.declaration.Name, f.schema, call.Args)
	if err != nil {
		return tools.Result{}, err
	}
	out, err := f.run(ctx, call, in)
	if err != nil {
		return tools.Result{}, classify(ctx, f.declaration.Name, err)
	}
	return encode(f.declaration.Name, out)
}

func (f *function[In, Out]) run(ctx context.Context, call tools.Call, in In) (out Out, err error) {
	defer func() {
		if r := recover(); r != nil {
			// The panic's text was not written for a model and may hold anything.
			err = &tools.Error{
				Message: fmt.Sprintf("tool %s failed: internal error", f.declaration.Name),
				Cause:   fmt.Errorf("panic: %v\n%s", r, cut(string(debug.Stack()))),
			}
		}
	}()
	return f.fn(ctx, call, in)
}

func encode(name string, out any) (tools.Result, error) {
	if result, ok := out.(tools.Result); ok {
		if result.Response == nil {
			result.Response = map[string]any{}
		}
		return result, nil
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return tools.Result{}, &tools.Error{Message: fmt.Sprintf("tool %s ran, but its result cannot be shown", name), Cause: fmt.Errorf("encode result: %w", err)}
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return tools.Result{}, &tools.Error{Message: fmt.Sprintf("tool %s ran, but its result cannot be shown", name), Cause: fmt.Errorf("encode result: %w", err)}
	}
	object, ok := value.(map[string]any)
	if !ok {
		object = map[string]any{"result": value}
	}
	return tools.Result{Response: object}, nil
}

// classify decides who hears of fn's error: a person, the caller's retry, or the model.
func classify(ctx context.Context, name string, err error) error {
	var required *auth.RequiredError
	var told *tools.Error
	var confirm *tools.ConfirmationRequiredError
	var ask *tools.AnswerRequiredError
	switch {
	case errors.As(err, &required), errors.As(err, &confirm), errors.As(err, &ask), errors.Is(err, tools.ErrNotExecuted), errors.Is(err, tools.ErrUnknown), errors.Is(err, auth.ErrUnavailable):
		return fmt.Errorf("tool %s: %w", name, err)
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return fmt.Errorf("tool %s: %w", name, err)
	case errors.As(err, &told):
		return &tools.Error{Message: cut(told.Message), Cause: told.Cause}
	case errors.Is(err, auth.ErrMisconfigured), errors.Is(err, auth.ErrNotDeclared), errors.Is(err, auth.ErrNoToken):
		// Neither a login nor another attempt would help, and the model cannot change the configuration.
		return &tools.Error{Message: fmt.Sprintf("tool %s cannot be used: its credentials are not set up", name), Cause: err}
	default:
		return &tools.Error{Message: cut(err.Error()), Cause: err}
	}
}
