package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/auth"
	"tarry/models"
	"tarry/models/openai"
)

const key = "sk-secret-key"

// fakeAPI speaks the wire of Chat Completions: one answer for every request.
type fakeAPI struct {
	*httptest.Server
	requests atomic.Int32
	path     string
	header   http.Header
	body     map[string]any
}

func serve(t *testing.T, answer http.HandlerFunc) *fakeAPI {
	t.Helper()
	api := &fakeAPI{}
	api.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		api.requests.Add(1)
		api.path, api.header, api.body = r.URL.RequestURI(), r.Header, nil
		_ = json.NewDecoder(r.Body).Decode(&api.body)
		answer(w, r)
	}))
	t.Cleanup(api.Close)
	return api
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

func events(chunks ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, c := range chunks {
			_, _ = fmt.Fprintf(w, "data: %s\n\n", c)
		}
	}
}

func (api *fakeAPI) model(t *testing.T) *openai.Model {
	t.Helper()
	m, err := openai.New(openai.Config{APIKey: auth.NewSecret(key), BaseURL: api.URL + "/v1", HTTPClient: api.Client()}, "gpt-5")
	require.NoError(t, err)
	return m
}

func ask() *models.Request {
	return &models.Request{Agent: "planner", Contents: []*genai.Content{genai.NewContentFromText("hi", genai.RoleUser)}}
}

func collect(ctx context.Context, m models.Model, req *models.Request, stream bool) ([]*models.Response, error) {
	var out []*models.Response
	for resp, err := range m.GenerateContent(ctx, req, stream) {
		if err != nil {
			return out, err
		}
		out = append(out, resp)
	}
	return out, nil
}

const hello = `{"model":"gpt-5-2026","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hello"}}]}`

// sent returns the request body for a request, as JSON.
func sent(t *testing.T, req *models.Request) map[string]any {
	t.Helper()
	api := serve(t, answer(hello))
	_, err := collect(t.Context(), api.model(t), req, false)
	require.NoError(t, err)
	return api.body
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	require.NoError(t, err)
	return string(out)
}

func TestConversationIsTranslated(t *testing.T) {
	t.Parallel()
	req := &models.Request{
		Agent: "planner",
		Config: &genai.GenerateContentConfig{SystemInstruction: &genai.Content{Parts: []*genai.Part{
			{Text: "be brief"}, {Text: "be kind"},
		}}},
		Contents: []*genai.Content{
			{Role: "user", Parts: []*genai.Part{
				{Text: "what is this?"}, {InlineData: &genai.Blob{MIMEType: "image/png", Data: []byte("png")}},
			}},
			{Role: "model", Parts: []*genai.Part{
				{Text: "secret thought", Thought: true},
				{Text: "looking"},
				{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "look", Args: map[string]any{"n": 1}}},
				{FunctionCall: &genai.FunctionCall{ID: "c2", Name: "look"}},
			}},
			{Role: "user", Parts: []*genai.Part{
				{FunctionResponse: &genai.FunctionResponse{ID: "c1", Name: "look", Response: map[string]any{"result": "cat"}}},
				{FunctionResponse: &genai.FunctionResponse{ID: "c2", Name: "look"}},
				{Text: "For context:"},
				{Text: "[other] said: hm"},
			}},
			{Role: "model", Parts: []*genai.Part{{Text: "only thought", Thought: true}}},
			{Role: "model", Parts: []*genai.Part{{Text: "a cat"}}},
		},
	}
	body := sent(t, req)
	require.JSONEq(t, `[
		{"role":"system","content":"be brief\n\nbe kind"},
		{"role":"user","content":[{"type":"text","text":"what is this?"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,cG5n"}}]},
		{"role":"assistant","content":"looking","tool_calls":[
			{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"n\":1}"}},
			{"id":"c2","type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"{\"result\":\"cat\"}"},
		{"role":"tool","tool_call_id":"c2","content":"{}"},
		{"role":"user","content":"For context:\n[other] said: hm"},
		{"role":"assistant","content":"a cat"},
		{"role":"user","content":"`+models.ContinueText+`"}
	]`, asJSON(t, body["messages"]))
	require.Equal(t, "gpt-5", body["model"])
	require.NotContains(t, asJSON(t, body), "planner", "the agent's label stays here")
	require.NotContains(t, asJSON(t, body), "thought")
}

func TestCallsWithoutIDsAreTiedByName(t *testing.T) {
	t.Parallel()
	body := sent(t, &models.Request{Contents: []*genai.Content{
		genai.NewContentFromText("hi", genai.RoleUser),
		{Role: "model", Parts: []*genai.Part{
			genai.NewPartFromFunctionCall("a", nil), genai.NewPartFromFunctionCall("b", nil), genai.NewPartFromFunctionCall("a", nil),
		}},
		{Role: "user", Parts: []*genai.Part{
			genai.NewPartFromFunctionResponse("b", nil), genai.NewPartFromFunctionResponse("a", nil), genai.NewPartFromFunctionResponse("a", nil),
		}},
	}})
	messages := body["messages"].([]any)
	var ids []any
	for _, m := range messages[2:] {
		ids = append(ids, m.(map[string]any)["tool_call_id"])
	}
	require.Equal(t, []any{"call_2", "call_1", "call_3"}, ids)
}

func TestSettingsAreTranslated(t *testing.T) {
	t.Parallel()
	temperature, topP, seed, yes, n := float32(0.7), float32(0.1), int32(3), true, int64(2)
	req := ask()
	req.Config = &genai.GenerateContentConfig{
		Temperature: &temperature, TopP: &topP, Seed: &seed, MaxOutputTokens: 100, StopSequences: []string{"END"},
		ResponseSchema: &genai.Schema{
			Type: genai.TypeObject, Required: []string{"kind"},
			Properties: map[string]*genai.Schema{
				"kind": {Type: genai.TypeString, Format: "enum", Enum: []string{"a", "b"}, Nullable: &yes},
				"list": {Type: genai.TypeArray, Items: &genai.Schema{Type: genai.TypeInteger}, MaxItems: &n},
				"any":  {AnyOf: []*genai.Schema{{Type: genai.TypeString}, {Type: genai.TypeNumber}}},
			},
		},
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{
			{Name: "raw", Description: "d", ParametersJsonSchema: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
			{Name: "converted", Parameters: &genai.Schema{Type: genai.TypeObject}},
			{Name: "none"},
		}}},
		ToolConfig: &genai.ToolConfig{FunctionCallingConfig: &genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny}},
	}
	body := sent(t, req)
	delete(body, "messages")
	require.JSONEq(t, `{
		"model":"gpt-5","temperature":0.7,"top_p":0.1,"seed":3,"max_completion_tokens":100,"stop":["END"],
		"tool_choice":"required",
		"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{
			"type":"object","required":["kind"],"properties":{
				"kind":{"type":["string","null"],"enum":["a","b",null]},
				"list":{"type":"array","items":{"type":"integer"},"maxItems":2},
				"any":{"anyOf":[{"type":"string"},{"type":"number"}]}}}}},
		"tools":[
			{"type":"function","function":{"name":"raw","description":"d","parameters":{"type":"object","properties":{"q":{"type":"string"}}}}},
			{"type":"function","function":{"name":"converted","parameters":{"type":"object","properties":{}}}},
			{"type":"function","function":{"name":"none","parameters":{"type":"object","properties":{}}}}]
	}`, asJSON(t, body))

	req.Config = &genai.GenerateContentConfig{ResponseMIMEType: "application/json"}
	require.Equal(t, map[string]any{"type": "json_object"}, sent(t, req)["response_format"])
}

func TestToolChoice(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config *genai.FunctionCallingConfig
		want   string
	}{
		{nil, `null`},
		{&genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeNone}, `"none"`},
		{&genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAuto}, `"auto"`},
		{
			&genai.FunctionCallingConfig{Mode: genai.FunctionCallingConfigModeAny, AllowedFunctionNames: []string{"a"}},
			`{"type":"function","function":{"name":"a"}}`,
		},
	} {
		req := ask()
		req.Config = &genai.GenerateContentConfig{
			Tools:      []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{Name: "a"}}}},
			ToolConfig: &genai.ToolConfig{FunctionCallingConfig: tt.config},
		}
		require.JSONEq(t, tt.want, asJSON(t, sent(t, req)["tool_choice"]))
	}
}

func TestUntranslatableRequestsAreNotSent(t *testing.T) {
	t.Parallel()
	api := serve(t, answer(hello))
	for _, part := range []*genai.Part{
		{InlineData: &genai.Blob{MIMEType: "audio/wav", Data: []byte("x")}},
		{FileData: &genai.FileData{MIMEType: "image/png", FileURI: "gs://bucket/x"}},
	} {
		req := &models.Request{Contents: []*genai.Content{{Role: "user", Parts: []*genai.Part{part}}}}
		_, err := collect(t.Context(), api.model(t), req, false)
		var call *models.Error
		require.ErrorAs(t, err, &call)
		require.Equal(t, models.KindInvalid, call.Kind)
		require.False(t, call.Retryable())
	}
	require.Zero(t, api.requests.Load())
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	api := serve(t, answer(`{"model":"gpt-5-2026","choices":[{"index":0,"finish_reason":"tool_calls","message":{
		"role":"assistant","content":"let me","tool_calls":[
			{"id":"c1","type":"function","function":{"name":"a","arguments":"{\"n\":1}"}},
			{"id":"c2","type":"function","function":{"name":"b","arguments":""}}]}}],
		"usage":{"prompt_tokens":10,"completion_tokens":7,"total_tokens":17,
			"completion_tokens_details":{"reasoning_tokens":3},"prompt_tokens_details":{"cached_tokens":4}}}`))
	got, err := collect(t.Context(), api.model(t), ask(), false)
	require.NoError(t, err)
	require.Equal(t, []*models.Response{{
		Content: &genai.Content{Role: "model", Parts: []*genai.Part{
			{Text: "let me"},
			{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "a", Args: map[string]any{"n": 1.0}}},
			{FunctionCall: &genai.FunctionCall{ID: "c2", Name: "b", Args: map[string]any{}}},
		}},
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{
			PromptTokenCount: 10, CandidatesTokenCount: 4, ThoughtsTokenCount: 3, CachedContentTokenCount: 4, TotalTokenCount: 17,
		},
		FinishReason: genai.FinishReasonStop, ModelVersion: "gpt-5-2026", TurnComplete: true,
	}}, got)
	require.Equal(t, "/v1/chat/completions", api.path)
	require.Equal(t, "Bearer "+key, api.header.Get("Authorization"))
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		message, finish string
		reason          genai.FinishReason
		code            string
	}{
		{`{"content":"a"}`, "stop", genai.FinishReasonStop, ""},
		{`{"content":"a"}`, "length", genai.FinishReasonMaxTokens, ""},
		{`{"content":null}`, "length", genai.FinishReasonMaxTokens, "MAX_TOKENS"},
		{`{"content":null}`, "content_filter", genai.FinishReasonSafety, "SAFETY"},
		{`{"refusal":"no"}`, "stop", genai.FinishReasonSafety, ""},
		{`{"content":"a"}`, "new_reason", genai.FinishReasonOther, ""},
		{`{"content":""}`, "stop", genai.FinishReasonStop, ""},
	} {
		body := fmt.Sprintf(`{"choices":[{"finish_reason":%q,"message":%s}]}`, tt.finish, tt.message)
		got, err := collect(t.Context(), serve(t, answer(body)).model(t), ask(), false)
		require.NoError(t, err)
		require.Equal(t, tt.reason, got[0].FinishReason, body)
		require.Equal(t, tt.code, got[0].ErrorCode, body)
	}
}

func TestStreamIsAggregated(t *testing.T) {
	t.Parallel()
	api := serve(t, events(
		`{"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Hel"}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"lo"}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"a","arguments":""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"b","arguments":"{\"m\""}}]}}]}`,
		`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"n\":1}"}},{"index":1,"function":{"arguments":":2}"}}]}}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`,
		`[DONE]`,
	))
	got, err := collect(t.Context(), api.model(t), ask(), true)
	require.NoError(t, err)
	require.Len(t, got, 3)
	require.True(t, got[0].Partial)
	require.Equal(t, "lo", got[1].Content.Parts[0].Text)
	require.Equal(t, &models.Response{
		Content: &genai.Content{Role: "model", Parts: []*genai.Part{
			{Text: "Hello"},
			{FunctionCall: &genai.FunctionCall{ID: "c1", Name: "a", Args: map[string]any{"n": 1.0}}},
			{FunctionCall: &genai.FunctionCall{ID: "c2", Name: "b", Args: map[string]any{"m": 2.0}}},
		}},
		UsageMetadata: &genai.GenerateContentResponseUsageMetadata{PromptTokenCount: 1, CandidatesTokenCount: 2, TotalTokenCount: 3},
		FinishReason:  genai.FinishReasonStop, ModelVersion: "m", TurnComplete: true,
	}, got[2])
	require.Equal(t, true, api.body["stream"])
	require.Equal(t, map[string]any{"include_usage": true}, api.body["stream_options"])
}

func TestStreamedCallsThatShareAnIndex(t *testing.T) {
	t.Parallel()
	api := serve(t, events(
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"a","arguments":"{}"}}]}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"b","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`,
		`[DONE]`,
	))
	got, err := collect(t.Context(), api.model(t), ask(), true)
	require.NoError(t, err)
	require.Len(t, got[0].Content.Parts, 2)
	require.Equal(t, "b", got[0].Content.Parts[1].FunctionCall.Name)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		for _, status := range []int{302, 400, 401, 403, 404, 408, 409, 422, 429, 500, 503} {
			t.Run(fmt.Sprint(status, stream), func(t *testing.T) {
				t.Parallel()
				api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "7")
					w.WriteHeader(status)
					_, _ = io.WriteString(w, `{"error":{"message":"prompt and sk-secret-key","type":"invalid_request_error","code":"context_length_exceeded"}}`)
				})
				got, err := collect(t.Context(), api.model(t), ask(), stream)
				require.Empty(t, got)
				var call *models.Error
				require.ErrorAs(t, err, &call)
				require.Equal(t, status, call.StatusCode)
				require.Equal(t, status == 408 || status == 409 || status == 429 || status >= 500, call.Retryable())
				require.Equal(t, 7*time.Second, call.RetryAfter)
				require.Equal(t, "context_length_exceeded", call.Reason)
				require.Equal(t, int32(1), api.requests.Load(), "the library's own retries are off")
				for _, secret := range []string{key, "prompt", api.URL} {
					require.NotContains(t, fmt.Sprintf("%s %v %+v %#v", err, err, err, err), secret)
				}
			})
		}
	}
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	chunk := `{"choices":[{"index":0,"delta":{"content":"Hel"}}]}`
	call := func(arguments, finish string) string {
		return fmt.Sprintf(`{"choices":[{"finish_reason":%q,"message":{"tool_calls":[{"id":"c","type":"function","function":{"name":"a","arguments":%q}}]}}]}`, finish, arguments)
	}
	for _, tt := range []struct {
		name    string
		stream  bool
		handler http.HandlerFunc
		kind    models.Kind
		retry   bool
	}{
		{"not JSON", false, answer("<html>sk-secret-key"), models.KindUnreadable, true},
		{"html", false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>sk-secret-key") }, models.KindUnreadable, true},
		{"no choice", false, answer("{}"), models.KindUnreadable, true},
		{"bad chunk", true, events(chunk, "{sk-secret-key"), models.KindUnreadable, true},
		{"ends early", true, events(chunk), models.KindNetwork, true},
		{"cut", true, func(w http.ResponseWriter, r *http.Request) {
			events(chunk)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, models.KindNetwork, true},
		{"error in stream", true, events(chunk, `{"error":{"message":"sk-secret-key","type":"server_error"}}`), models.KindServer, true},
		{"final error in stream", true, events(chunk, `{"error":{"message":"sk-secret-key","code":"context_length_exceeded"}}`), models.KindInvalid, false},
		{"arguments cut", false, answer(call(`{"n":`, "length")), models.KindMalformedCall, false},
		{"arguments no object", false, answer(call(`[1]`, "tool_calls")), models.KindMalformedCall, false},
		{"arguments null", false, answer(call(`null`, "tool_calls")), models.KindMalformedCall, false},
		{"arguments text", false, answer(call(`sk-secret-key`, "tool_calls")), models.KindMalformedCall, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := serve(t, tt.handler)
			_, err := collect(t.Context(), api.model(t), ask(), tt.stream)
			var call *models.Error
			require.ErrorAs(t, err, &call)
			require.Equal(t, tt.kind, call.Kind)
			require.Equal(t, tt.retry, call.Retryable())
			require.NotContains(t, err.Error(), key)
			require.Equal(t, int32(1), api.requests.Load())
		})
	}
}

func TestServerGone(t *testing.T) {
	t.Parallel()
	api := serve(t, answer("{}"))
	m := api.model(t)
	api.Close()
	for _, stream := range []bool{false, true} {
		_, err := collect(t.Context(), m, ask(), stream)
		var call *models.Error
		require.ErrorAs(t, err, &call)
		require.Equal(t, models.KindNetwork, call.Kind)
		require.NotContains(t, err.Error(), strings.TrimPrefix(api.URL, "http://"))
	}
}

func TestCancelEndsTheStream(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(`{"choices":[{"index":0,"delta":{"content":"Hel"}}]}`)(w, r)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range api.model(t).GenerateContent(ctx, ask(), true) {
		last = err
		cancel()
	}
	require.ErrorIs(t, last, context.Canceled)
}

func TestEnvironmentHasNoInfluence(t *testing.T) {
	thief := serve(t, answer(hello))
	for _, name := range []string{
		"OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_WEBHOOK_SECRET",
	} {
		t.Setenv(name, "garbage")
	}
	t.Setenv("OPENAI_BASE_URL", thief.URL)
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Extra: garbage")

	api := serve(t, answer(hello))
	_, err := collect(t.Context(), api.model(t), ask(), false)
	require.NoError(t, err)
	require.Equal(t, "Bearer "+key, api.header.Get("Authorization"))
	require.NotContains(t, fmt.Sprint(api.header, api.body), "garbage")

	keyless, err := openai.New(openai.Config{BaseURL: api.URL + "/v1/", HTTPClient: api.Client()}, "local")
	require.NoError(t, err)
	_, err = collect(t.Context(), keyless, ask(), false)
	require.NoError(t, err)
	require.Empty(t, api.header.Get("Authorization"))
	require.Zero(t, thief.requests.Load())

	_, err = openai.New(openai.Config{HTTPClient: api.Client()}, "m")
	require.ErrorContains(t, err, "no API key")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	cfg := openai.Config{APIKey: auth.NewSecret(key), HTTPClient: &http.Client{}}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, &cfg), key)
	_, err := openai.New(openai.Config{APIKey: auth.NewSecret(key)}, "m")
	require.ErrorContains(t, err, "HTTP client")
	_, err = openai.Factory(cfg)(t.Context(), "")
	require.ErrorContains(t, err, "no model name")

	api := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	m, err := openai.New(openai.Config{BaseURL: api.URL, HTTPClient: api.Client(), Provider: "local", MaxTokensField: true}, "m")
	require.NoError(t, err)
	req := ask()
	req.Config = &genai.GenerateContentConfig{MaxOutputTokens: 5}
	_, err = collect(t.Context(), m, req, false)
	require.EqualError(t, err, "local: request not accepted (HTTP 418)")
	require.InDelta(t, 5, api.body["max_tokens"], 0)
	require.Equal(t, "/chat/completions", api.path)
}
