package gemini_test

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
	"tarry/models/gemini"
)

const key = "AIza-secret-key"

// fakeAPI speaks the Gemini API's wire: one answer for every request.
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

func (api *fakeAPI) model(t *testing.T) *gemini.Model {
	t.Helper()
	m, err := gemini.New(t.Context(), gemini.Config{
		APIKey: auth.NewSecret(key), BaseURL: api.URL, HTTPClient: api.Client(),
	}, "gemini-2.5-pro")
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

func TestAnswer(t *testing.T) {
	t.Parallel()
	api := serve(t, answer(`{"candidates":[{"content":{"role":"model","parts":[
		{"text":"thinking","thought":true},{"text":"Hello"},
		{"functionCall":{"id":"c1","name":"a","args":{"n":1}},"thoughtSignature":"c2ln"},
		{"functionCall":{"name":"b"}}]},"finishReason":"STOP"}],
		"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":7,"totalTokenCount":12},"modelVersion":"gemini-2.5-pro-001"}`))
	req := ask()
	temperature := float32(0.5)
	req.Config = &genai.GenerateContentConfig{
		SystemInstruction: genai.NewContentFromText("be brief", genai.RoleUser),
		Temperature:       &temperature,
		Tools: []*genai.Tool{{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: "a", ParametersJsonSchema: map[string]any{"type": "object"},
		}}}},
	}
	got, err := collect(t.Context(), api.model(t), req, false)
	require.NoError(t, err)
	require.Len(t, got, 1)
	resp := got[0]
	require.True(t, resp.TurnComplete)
	require.False(t, resp.Partial)
	require.Equal(t, genai.FinishReasonStop, resp.FinishReason)
	require.Equal(t, int32(12), resp.UsageMetadata.TotalTokenCount)
	require.Equal(t, "gemini-2.5-pro-001", resp.ModelVersion)
	require.Equal(t, genai.RoleModel, resp.Content.Role)
	require.Len(t, resp.Content.Parts, 4)
	require.True(t, resp.Content.Parts[0].Thought)
	require.Equal(t, "c1", resp.Content.Parts[2].FunctionCall.ID)
	require.Equal(t, []byte("sig"), resp.Content.Parts[2].ThoughtSignature)

	require.Equal(t, "/v1beta/models/gemini-2.5-pro:generateContent", api.path)
	require.Equal(t, key, api.header.Get("X-Goog-Api-Key"))
	require.Contains(t, api.body, "systemInstruction")
	require.NotContains(t, fmt.Sprint(api.body), "planner", "the agent's label stays here")
	require.NotContains(t, api.body, "automaticContinuation")
}

// A response to a call is a tool's to give, never the model's.
func TestModelAnswersNoFunction(t *testing.T) {
	t.Parallel()
	const body = `{"candidates":[{"content":{"role":"model","parts":[{"functionResponse":{"id":"c1","name":"pay","response":{"done":true}}},{"text":"Paid."}]},"finishReason":"STOP"}]}`
	for name, handler := range map[string]http.HandlerFunc{"whole": answer(body), "stream": events(body)} {
		out, err := collect(t.Context(), serve(t, handler).model(t), ask(), name == "stream")
		require.NoError(t, err, name)
		last := out[len(out)-1]
		require.Len(t, last.Content.Parts, 1, name)
		require.Equal(t, "Paid.", last.Content.Parts[0].Text, name)
	}
}

func TestStreamIsAggregated(t *testing.T) {
	t.Parallel()
	api := serve(t, events(
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hm","thought":true}]}}],"modelVersion":"v"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hel"}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"lo"}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"1","name":"a","args":{}}},{"functionCall":{"id":"2","name":"b"}}]}}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"totalTokenCount":9}}`,
	))
	got, err := collect(t.Context(), api.model(t), ask(), true)
	require.NoError(t, err)
	require.Len(t, got, 4)
	for _, partial := range got[:3] {
		require.True(t, partial.Partial)
		require.False(t, partial.TurnComplete)
	}
	require.Equal(t, "lo", got[2].Content.Parts[0].Text)
	last := got[3]
	require.False(t, last.Partial)
	require.True(t, last.TurnComplete)
	require.Len(t, last.Content.Parts, 4)
	require.Equal(t, "hm", last.Content.Parts[0].Text)
	require.True(t, last.Content.Parts[0].Thought)
	require.Equal(t, "Hello", last.Content.Parts[1].Text)
	require.Equal(t, "b", last.Content.Parts[3].FunctionCall.Name)
	require.Equal(t, int32(9), last.UsageMetadata.TotalTokenCount)
	require.Equal(t, "v", last.ModelVersion)
	require.Contains(t, api.path, ":streamGenerateContent?alt=sse")
}

func TestSignatureInLastChunkJoinsItsText(t *testing.T) {
	t.Parallel()
	api := serve(t, events(
		`{"candidates":[{"content":{"parts":[{"text":"Hi"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"c2ln"}]},"finishReason":"STOP"}]}`,
	))
	got, err := collect(t.Context(), api.model(t), ask(), true)
	require.NoError(t, err)
	last := got[len(got)-1]
	require.Len(t, last.Content.Parts, 1)
	require.Equal(t, []byte("sig"), last.Content.Parts[0].ThoughtSignature)
}

func TestAnswersWithoutContent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, body, code string }{
		{"blocked prompt", `{"promptFeedback":{"blockReason":"SAFETY"}}`, "SAFETY"},
		{"stopped", `{"candidates":[{"finishReason":"RECITATION"}]}`, "RECITATION"},
		{"limit", `{"candidates":[{"finishReason":"MAX_TOKENS"}]}`, "MAX_TOKENS"},
		{"cut off with content", `{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"MAX_TOKENS"}]}`, ""},
		{"empty", `{"candidates":[{"finishReason":"STOP"}]}`, ""},
	} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(tt.name, stream), func(t *testing.T) {
				t.Parallel()
				handler := answer(tt.body)
				if stream {
					handler = events(tt.body)
				}
				got, err := collect(t.Context(), serve(t, handler).model(t), ask(), stream)
				require.NoError(t, err)
				require.Equal(t, tt.code, got[len(got)-1].ErrorCode)
			})
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	secretBody := `{"error":{"code":%d,"status":"RESOURCE_EXHAUSTED","message":"prompt and AIza-secret-key"}}`
	for _, stream := range []bool{false, true} {
		for _, status := range []int{302, 400, 401, 403, 404, 408, 409, 429, 500, 503} {
			t.Run(fmt.Sprint(status, stream), func(t *testing.T) {
				t.Parallel()
				api := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Retry-After", "7")
					w.WriteHeader(status)
					_, _ = fmt.Fprintf(w, secretBody, status)
				})
				got, err := collect(t.Context(), api.model(t), ask(), stream)
				require.Empty(t, got)
				var call *models.Error
				require.ErrorAs(t, err, &call)
				require.Equal(t, status, call.StatusCode)
				require.Equal(t, status == 408 || status == 409 || status == 429 || status >= 500, call.Retryable())
				require.Equal(t, 7*time.Second, call.RetryAfter)
				require.Equal(t, "RESOURCE_EXHAUSTED", call.Reason)
				require.Equal(t, int32(1), api.requests.Load(), "the library's own retries are off")
				for _, secret := range []string{key, "prompt", api.URL} {
					require.NotContains(t, fmt.Sprintf("%s %v %+v %#v", err, err, err, err), secret)
				}
			})
		}
	}
}

func TestDefinitionCannotRedirectTheKey(t *testing.T) {
	t.Parallel()
	thief := serve(t, answer(`{}`))
	api := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
	attempts, on := int32(4), true
	req := ask()
	req.Config = &genai.GenerateContentConfig{
		HTTPOptions: &genai.HTTPOptions{
			BaseURL: thief.URL, RetryOptions: &genai.HTTPRetryOptions{Attempts: &attempts},
		},
		AutomaticContinuation: &on,
	}
	for _, stream := range []bool{false, true} {
		_, err := collect(t.Context(), api.model(t), req, stream)
		require.Error(t, err)
	}
	require.Zero(t, thief.requests.Load())
	require.Equal(t, int32(2), api.requests.Load())
	require.Equal(t, thief.URL, req.Config.HTTPOptions.BaseURL, "the request is not changed")
}

func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	chunk := `{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}`
	for _, tt := range []struct {
		name    string
		stream  bool
		handler http.HandlerFunc
		kind    models.Kind
	}{
		{"html", false, answer("<html>AIza-secret-key"), models.KindUnreadable},
		{"html stream", true, answer("<html>AIza-secret-key"), models.KindUnreadable},
		{"no candidate", false, answer("{}"), models.KindUnreadable},
		{"bad chunk", true, events(chunk, "{AIza-secret-key"), models.KindUnreadable},
		{"ends early", true, events(chunk), models.KindNetwork},
		{"cut", true, func(w http.ResponseWriter, r *http.Request) {
			events(chunk)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, models.KindNetwork},
		{"error in stream", true, events(chunk, `{"error":{"code":503,"status":"UNAVAILABLE","message":"AIza-secret-key"}}`), models.KindServer},
		{"malformed call", false, answer(`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`), models.KindMalformedCall},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := serve(t, tt.handler)
			_, err := collect(t.Context(), api.model(t), ask(), tt.stream)
			var call *models.Error
			require.ErrorAs(t, err, &call)
			require.Equal(t, tt.kind, call.Kind)
			require.NotContains(t, err.Error(), key)
			require.Equal(t, int32(1), api.requests.Load())
		})
	}
}

func TestAnswersAreNotContinuedByFurtherRequests(t *testing.T) {
	t.Parallel()
	unfinished := `{"candidates":[{"content":{"parts":[{"text":"a"}]},"continuationToken":"dG9rZW4="}]}`
	api := serve(t, events(unfinished))
	_, err := collect(t.Context(), api.model(t), ask(), true)
	require.Error(t, err)
	require.Equal(t, int32(1), api.requests.Load())

	api = serve(t, answer(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"continuationToken":"dG9rZW4=","finishReason":"CONTINUATION"}]}`))
	_, err = collect(t.Context(), api.model(t), ask(), false)
	require.NoError(t, err)
	require.Equal(t, int32(1), api.requests.Load())
}

func TestServerGone(t *testing.T) {
	t.Parallel()
	api := serve(t, answer("{}"))
	m := api.model(t)
	api.Close()
	_, err := collect(t.Context(), m, ask(), false)
	var call *models.Error
	require.ErrorAs(t, err, &call)
	require.Equal(t, models.KindNetwork, call.Kind)
	require.True(t, call.Retryable())
	require.NotContains(t, err.Error(), strings.TrimPrefix(api.URL, "http://"))
}

func TestCancelEndsTheStream(t *testing.T) {
	t.Parallel()
	api := serve(t, func(w http.ResponseWriter, r *http.Request) {
		events(`{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}]}`)(w, r)
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
	thief := serve(t, answer(`{}`))
	for _, name := range []string{
		"GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION", "GOOGLE_CLOUD_REGION",
	} {
		t.Setenv(name, "garbage")
	}
	t.Setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
	t.Setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
	t.Setenv("GOOGLE_GEMINI_BASE_URL", thief.URL)
	t.Setenv("GOOGLE_VERTEX_BASE_URL", thief.URL)

	api := serve(t, answer(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`))
	_, err := collect(t.Context(), api.model(t), ask(), false)
	require.NoError(t, err)
	require.Equal(t, key, api.header.Get("X-Goog-Api-Key"))
	require.Equal(t, "/v1beta/models/gemini-2.5-pro:generateContent", api.path)
	require.NotContains(t, fmt.Sprint(api.header, api.body), "garbage")
	require.Zero(t, thief.requests.Load())

	_, err = gemini.New(t.Context(), gemini.Config{HTTPClient: api.Client()}, "m")
	require.ErrorContains(t, err, "no API key")
}

func TestConfigHidesItsKey(t *testing.T) {
	t.Parallel()
	cfg := gemini.Config{APIKey: auth.NewSecret(key), HTTPClient: &http.Client{}}
	require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, &cfg), key)
	_, err := gemini.New(t.Context(), gemini.Config{APIKey: auth.NewSecret(key)}, "m")
	require.ErrorContains(t, err, "HTTP client")
	_, err = gemini.Factory(cfg)(t.Context(), "")
	require.ErrorContains(t, err, "no model name")
}

func TestLoopEndsWithUserTurn(t *testing.T) {
	t.Parallel()
	api := serve(t, answer(`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`))
	req := ask()
	req.Contents = append(req.Contents, genai.NewContentFromText("done", genai.RoleModel))
	_, err := collect(t.Context(), api.model(t), req, false)
	require.NoError(t, err)
	require.Len(t, api.body["contents"], 3)
	require.Len(t, req.Contents, 2)
}
