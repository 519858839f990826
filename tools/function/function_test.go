package function_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
	"tarry/tools/function"
)

type order struct {
	City  string   `json:"city" jsonschema:"where to"`
	Count int      `json:"count,omitempty"`
	Tags  []string `json:"tags,omitempty"`
}

type receipt struct {
	Text string `json:"text"`
}

func place(_ context.Context, in order) (receipt, error) {
	return receipt{Text: fmt.Sprintf("%s %d %v", in.City, in.Count, in.Tags)}, nil
}

func call(t *testing.T, tool tools.Tool, args string) (tools.Result, error) {
	t.Helper()
	return tool.Call(t.Context(), tools.Call{ID: "call-1", Name: tool.Declaration().Name, Args: json.RawMessage(args)})
}

func TestDeclaration(t *testing.T) {
	t.Parallel()
	tool, err := function.New("shop.place_order", "Places an order.", place, function.Idempotent())
	require.NoError(t, err)
	d := tool.Declaration()
	require.Equal(t, "shop.place_order", d.Name)
	require.Equal(t, "Places an order.", d.Description)
	require.True(t, d.Idempotent)
	require.JSONEq(t, `{
		"type": "object", "required": ["city"], "additionalProperties": false,
		"properties": {
			"city": {"type": "string", "description": "where to"},
			"count": {"type": "integer"},
			"tags": {"type": ["null", "array"], "items": {"type": "string"}}
		}
	}`, string(d.Parameters))
	require.JSONEq(t, `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`, string(d.Response))
	_, ok := tool.(tools.Authorized)
	require.False(t, ok, "a tool without credentials is not asked for any")
}

func TestArguments(t *testing.T) {
	t.Parallel()
	tool, err := function.New("order", "", place)
	require.NoError(t, err)
	for name, tt := range map[string]struct{ args, text, problem string }{
		"ok":             {args: `{"city":"Oslo","count":2,"tags":["a"]}`, text: "Oslo 2 [a]"},
		"integer as 3.0": {args: `{"city":"Oslo","count":3.0}`, text: "Oslo 3 []"},
		"big integer":    {args: `{"city":"Oslo","count":9007199254740993}`, text: "Oslo 9007199254740993 []"},
		"null list":      {args: `{"city":"Oslo","tags":null}`, text: "Oslo 0 []"},
		"none":           {args: ``, problem: `missing properties: ["city"]`},
		"null":           {args: `null`, problem: `missing properties: ["city"]`},
		"wrong type":     {args: `{"city":7}`, problem: `/properties/city`},
		"fraction":       {args: `{"city":"Oslo","count":1.5}`, problem: `/properties/count`},
		"unknown":        {args: `{"city":"Oslo","town":"x"}`, problem: `"town"`},
		"no object":      {args: `["Oslo"]`, problem: "not a JSON object"},
		"no JSON":        {args: `{"city"`, problem: "unexpected end"},
		"huge":           {args: `{"city":"Oslo","` + strings.Repeat("é", 4000) + `":1}`, problem: "do not fit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := call(t, tool, tt.args)
			if tt.problem == "" {
				require.NoError(t, err)
				require.Equal(t, map[string]any{"text": tt.text}, res.Response)
				return
			}
			var told *tools.Error
			require.ErrorAs(t, err, &told)
			require.Contains(t, told.Message, "the arguments of order do not fit its parameters: ")
			require.Contains(t, told.Message, tt.problem)
			require.LessOrEqual(t, len(told.Message), 2<<10)
		})
	}
}

func returns[Out any](t *testing.T, out Out) tools.Tool {
	t.Helper()
	tool, err := function.New("f", "", func(context.Context, struct{}) (Out, error) { return out, nil })
	require.NoError(t, err)
	return tool
}

func TestResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tool     tools.Tool
		response string
		schema   string
	}{
		"object":       {returns(t, receipt{"x"}), `{"text":"x"}`, `{"type":"object","required":["text"],"additionalProperties":false,"properties":{"text":{"type":"string"}}}`},
		"map":          {returns(t, map[string]int{"a": 1}), `{"a":1}`, `{"type":"object","additionalProperties":{"type":"integer"}}`},
		"string":       {returns(t, "x"), `{"result":"x"}`, `{"type":"object","properties":{"result":{"type":"string"}}}`},
		"list":         {returns(t, []int{1, 2}), `{"result":[1,2]}`, `{"type":"object","properties":{"result":{"type":["null","array"],"items":{"type":"integer"}}}}`},
		"nil pointer":  {returns(t, (*receipt)(nil)), `{"result":null}`, ""},
		"any":          {returns[any](t, map[string]any{"a": true}), `{"a":true}`, ""},
		"tools.Result": {returns(t, tools.Result{Escalate: true}), `{}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			res, err := call(t, tt.tool, `{}`)
			require.NoError(t, err)
			raw, err := json.Marshal(res.Response)
			require.NoError(t, err)
			require.JSONEq(t, tt.response, string(raw))
			if tt.schema != "" {
				require.JSONEq(t, tt.schema, string(tt.tool.Declaration().Response))
			}
			require.Equal(t, name == "tools.Result", res.Escalate)
		})
	}

	_, err := call(t, returns(t, make(chan int)), `{}`)
	var told *tools.Error
	require.ErrorAs(t, err, &told)
	require.Contains(t, told.Message, "ran, but its result cannot be shown")
}

func TestErrors(t *testing.T) {
	t.Parallel()
	required := &auth.RequiredError{Need: auth.Need{Key: "k"}}
	for name, tt := range map[string]struct {
		err     error
		message string // of the tools.Error; empty: passed on
		is      error
	}{
		"own words":     {err: errors.New("no such city"), message: "no such city"},
		"tools.Error":   {err: fmt.Errorf("wrapped: %w", tools.Errorf("sold out")), message: "sold out"},
		"login":         {err: fmt.Errorf("token k: %w", required), is: required},
		"not executed":  {err: fmt.Errorf("dial: %w", tools.ErrNotExecuted), is: tools.ErrNotExecuted},
		"unknown":       {err: fmt.Errorf("post: %w", tools.ErrUnknown), is: tools.ErrUnknown},
		"unavailable":   {err: fmt.Errorf("token k: %w", auth.ErrUnavailable), is: auth.ErrUnavailable},
		"misconfigured": {err: fmt.Errorf("token k: %w", auth.ErrMisconfigured), message: "tool f cannot be used: its credentials are not set up", is: auth.ErrMisconfigured},
		"not declared":  {err: fmt.Errorf("%w: k", auth.ErrNotDeclared), message: "tool f cannot be used: its credentials are not set up", is: auth.ErrNotDeclared},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, err := function.New("f", "", func(context.Context, struct{}) (string, error) { return "", tt.err })
			require.NoError(t, err)
			_, err = call(t, tool, `{}`)
			var told *tools.Error
			require.Equal(t, tt.message != "", errors.As(err, &told))
			if tt.message != "" {
				require.Equal(t, tt.message, told.Message)
			}
			if tt.is != nil {
				require.ErrorIs(t, err, tt.is)
			}
		})
	}
}

func TestLongErrorIsCut(t *testing.T) {
	t.Parallel()
	tool, err := function.New("f", "", func(context.Context, struct{}) (string, error) { return "", errors.New(strings.Repeat("ü", 5000)) })
	require.NoError(t, err)
	_, err = call(t, tool, `{}`)
	require.LessOrEqual(t, len(err.Error()), 2<<10)
	require.True(t, strings.HasSuffix(err.Error(), "ü…"))
}

func TestPanicIsAnError(t *testing.T) {
	t.Parallel()
	tool, err := function.New("f", "", func(context.Context, struct{}) (string, error) { panic("secret detail") })
	require.NoError(t, err)
	_, err = call(t, tool, `{}`)
	var told *tools.Error
	require.ErrorAs(t, err, &told)
	require.Equal(t, "tool f failed: internal error", told.Message)
	require.Contains(t, errors.Unwrap(told).Error(), "secret detail")
}

func TestCancelIsPassedOn(t *testing.T) {
	t.Parallel()
	tool, err := function.New("f", "", func(ctx context.Context, _ struct{}) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = tool.Call(ctx, tools.Call{})
	require.ErrorIs(t, err, context.Canceled)
	var told *tools.Error
	require.NotErrorAs(t, err, &told)
}

func TestNewCall(t *testing.T) {
	t.Parallel()
	tool, err := function.NewCall("f", "", func(_ context.Context, c tools.Call, in map[string]int) (tools.Result, error) {
		return tools.Result{
			Response:   map[string]any{"id": c.ID, "user": c.Owner.User, "seen": c.State["n"], "x": in["x"]},
			StateDelta: map[string]any{"n": 2},
		}, nil
	})
	require.NoError(t, err)
	res, err := tool.Call(t.Context(), tools.Call{
		ID: "call-1", Args: json.RawMessage(`{"x":7}`), Owner: agent.Owner{App: "a", User: "u"}, State: map[string]any{"n": 1},
	})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"id": "call-1", "user": "u", "seen": 1, "x": 7}, res.Response)
	require.Equal(t, map[string]any{"n": 2}, res.StateDelta)
}

type fakeBroker struct{ token auth.AccessToken }

func (b fakeBroker) Token(context.Context, auth.Want) (auth.AccessToken, error) { return b.token, nil }

func (b fakeBroker) Challenged(context.Context, auth.Want, auth.Challenge) error { return nil }

func credential(key string) agent.Auth {
	return agent.Auth{Key: key, Type: agent.AuthOAuth2, AuthorizationURL: "https://as/a", TokenURL: "https://as/t", ClientID: "c"}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	tool, err := function.New("f", "", func(ctx context.Context, _ struct{}) (string, error) {
		token, err := auth.Token(ctx, "calendar")
		return token.Access.Reveal(), err
	}, function.Credential(credential("calendar")), function.Credential(credential("mail")))
	require.NoError(t, err)
	authorized, ok := tool.(tools.Authorized)
	require.True(t, ok)
	require.Equal(t, []agent.Auth{credential("calendar"), credential("mail")}, authorized.Credentials())

	ctx := auth.WithBroker(t.Context(), fakeBroker{auth.AccessToken{Access: auth.NewSecret("T")}}, "f", authorized.Credentials())
	res, err := tool.Call(ctx, tools.Call{})
	require.NoError(t, err)
	require.Equal(t, "T", res.Response["result"])
}

func TestRefused(t *testing.T) {
	t.Parallel()
	bad := credential("k")
	bad.ClientID = ""
	for name, tt := range map[string]struct {
		make func() (tools.Tool, error)
		says string
	}{
		"empty name":  {func() (tools.Tool, error) { return function.New("", "", place) }, "must be letters"},
		"spaces":      {func() (tools.Tool, error) { return function.New("a b", "", place) }, "must be letters"},
		"reserved":    {func() (tools.Tool, error) { return function.New("adk_request_credential", "", place) }, "reserved"},
		"no function": {func() (tools.Tool, error) { return function.New[order, receipt]("f", "", nil) }, "no function"},
		"parameters string": {func() (tools.Tool, error) {
			return function.New("f", "", func(context.Context, string) (string, error) { return "", nil })
		}, "no struct"},
		"parameters chan": {func() (tools.Tool, error) {
			return function.New("f", "", func(context.Context, struct{ C chan int }) (string, error) { return "", nil })
		}, "schema of"},
		"credential": {func() (tools.Tool, error) { return function.New("f", "", place, function.Credential(bad)) }, "client_id"},
		"no key":     {func() (tools.Tool, error) { return function.New("f", "", place, function.Credential(credential(""))) }, "no key"},
		"mcp type": {func() (tools.Tool, error) {
			return function.New("f", "", place, function.Credential(agent.Auth{Key: "k", Type: agent.AuthMCP}))
		}, "MCP server"},
		"same key": {func() (tools.Tool, error) {
			return function.New("f", "", place, function.Credential(credential("k")), function.Credential(credential("k")))
		}, "two credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tt.make()
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestConfirmation(t *testing.T) {
	t.Parallel()
	asks := &tools.ConfirmationRequiredError{Hint: "Really?", Payload: map[string]any{"n": 1}}
	for name, opts := range map[string][]function.Option{"plain": nil, "guarded": {function.RequireConfirmation(), function.Credential(credential("k"))}} {
		tool, err := function.NewCall("f", "", func(_ context.Context, c tools.Call, _ struct{}) (bool, error) {
			if c.Confirmation == nil {
				return false, asks
			}
			return c.Confirmation.Confirmed, nil
		}, opts...)
		require.NoError(t, err)
		guarded, ok := tool.(tools.Guarded)
		require.True(t, ok)
		require.Equal(t, name == "guarded", guarded.RequiresConfirmation())
		_, err = tool.Call(t.Context(), tools.Call{})
		var required *tools.ConfirmationRequiredError
		require.ErrorAs(t, err, &required)
		require.Equal(t, asks, required)
		var told *tools.Error
		require.NotErrorAs(t, err, &told, "it is no failure")
		res, err := tool.Call(t.Context(), tools.Call{Confirmation: &tools.Confirmation{Confirmed: true}})
		require.NoError(t, err)
		require.Equal(t, map[string]any{"result": true}, res.Response)
	}
}

// A question of a function is no failure, and its answer reaches the repeated call.
func TestQuestion(t *testing.T) {
	t.Parallel()
	asks := &tools.AnswerRequiredError{Message: "How many?", Schema: json.RawMessage(`{"type":"integer"}`)}
	tool, err := function.NewCall("f", "", func(_ context.Context, c tools.Call, _ struct{}) (json.RawMessage, error) {
		if c.Answer == nil {
			return nil, fmt.Errorf("ask: %w", asks)
		}
		return c.Answer, nil
	}, function.LongRunning())
	require.NoError(t, err)
	long, ok := tool.(tools.LongRunning)
	require.True(t, ok)
	require.True(t, long.LongRunning())
	_, err = tool.Call(t.Context(), tools.Call{})
	var required *tools.AnswerRequiredError
	require.ErrorAs(t, err, &required)
	require.Equal(t, asks, required)
	var told *tools.Error
	require.NotErrorAs(t, err, &told)
	res, err := tool.Call(t.Context(), tools.Call{Answer: json.RawMessage("3")})
	require.NoError(t, err)
	require.Equal(t, map[string]any{"result": 3.0}, res.Response)
	plain, err := function.New("g", "", func(context.Context, struct{}) (bool, error) { return true, nil })
	require.NoError(t, err)
	long, ok = plain.(tools.LongRunning)
	require.True(t, ok)
	require.False(t, long.LongRunning())
}
