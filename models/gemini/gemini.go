package gemini

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"google.golang.org/genai"

	"tarry/auth"
	"tarry/models"
)

// Provider is the registry prefix, and the Provider of errors.
const Provider = "gemini"

const (
	defaultBaseURL = "https://generativelanguage.googleapis.com/"
	apiVersion     = "v1beta"
)

// Config says how to reach the Gemini API.
type Config struct {
	// APIKey is required. It is sent in a header and stands in no error.
	APIKey auth.Secret
	// HTTPClient is required. Its Timeout, if any, covers a whole answer, also a streamed one.
	HTTPClient *http.Client
	// BaseURL is Google's if empty.
	BaseURL string
}

// Model is one Gemini model.
type Model struct {
	name   string
	client *genai.Client
}

// Factory makes models for a registry.
func Factory(cfg Config) models.Factory {
	return func(ctx context.Context, name string) (models.Model, error) {
		m, err := New(ctx, cfg, name)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// New makes the model of a name such as "gemini-2.5-pro". It sends nothing.
func New(ctx context.Context, cfg Config, name string) (*Model, error) {
	switch {
	case cfg.APIKey.IsZero():
		return nil, errors.New("gemini: no API key configured")
	case cfg.HTTPClient == nil:
		return nil, errors.New("gemini: no HTTP client configured")
	case name == "":
		return nil, errors.New("gemini: no model name")
	}
	baseURL := cfg.BaseURL
	if baseURL == "" {
		baseURL = defaultBaseURL
	}
	// Every field that the library would otherwise fill from the environment is set. It still looks at the variables,
	// and logs a warning where both GOOGLE_API_KEY and GEMINI_API_KEY are set, but uses none.
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:     cfg.APIKey.Reveal(),
		Backend:    genai.BackendGeminiAPI,
		HTTPClient: models.HTTPClient(Provider, cfg.HTTPClient),
		HTTPOptions: genai.HTTPOptions{
			BaseURL: baseURL, APIVersion: apiVersion, RetryOptions: noRetries(),
		},
	})
	if err != nil {
		// The library's error prints its configuration, key included.
		return nil, errors.New("gemini: client configuration not accepted")
	}
	return &Model{name: name, client: client}, nil
}

// GenerateContent implements [models.Model].
func (m *Model) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		var answered atomic.Bool
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotFirstResponseByte: func() { answered.Store(true) },
		})
		contents := models.EnsureUserTurn(req.Contents)
		config := callConfig(req.Config)
		if stream {
			m.stream(traced, &answered, contents, config, yield)
			return
		}
		resp, err := m.client.Models.GenerateContent(traced, m.name, contents, config)
		if err != nil {
			yield(nil, callError(ctx, &answered, err))
			return
		}
		out, err := response(resp)
		yield(out, err)
	}
}

func (m *Model) stream(ctx context.Context, answered *atomic.Bool, contents []*genai.Content,
	config *genai.GenerateContentConfig, yield func(*models.Response, error) bool,
) {
	var whole aggregate
	for chunk, err := range m.client.Models.GenerateContentStream(ctx, m.name, contents, config) {
		if err != nil {
			yield(nil, callError(ctx, answered, err))
			return
		}
		if partial := whole.add(chunk); partial != nil && !yield(partial, nil) {
			return
		}
	}
	if ctx.Err() != nil {
		yield(nil, callError(ctx, answered, ctx.Err()))
		return
	}
	if !whole.finished() {
		// The library ends a stream silently when the connection is closed between two chunks.
		yield(nil, &models.Error{Kind: models.KindNetwork, Provider: Provider, Message: "stream ended early"})
		return
	}
	out, err := response(whole.result())
	yield(out, err)
}

// callConfig copies the settings of a definition. HTTPOptions are replaced: with another base URL there the key would go
// to a host of the definition's choice, and with retry options one call would be several requests. So would automatic
// continuation, which the library has on by default.
func callConfig(config *genai.GenerateContentConfig) *genai.GenerateContentConfig {
	var out genai.GenerateContentConfig
	if config != nil {
		out = *config
	}
	out.HTTPOptions = &genai.HTTPOptions{RetryOptions: noRetries()}
	out.AutomaticContinuation = new(bool)
	return &out
}

func noRetries() *genai.HTTPRetryOptions {
	attempts := int32(1)
	return &genai.HTTPRetryOptions{Attempts: &attempts}
}

func callError(ctx context.Context, answered *atomic.Bool, err error) error {
	var api genai.APIError
	if errors.As(err, &api) && api.Code >= 0 && api.Code <= 599 {
		err = models.StatusError(Provider, api.Code, nil, api.Status, time.Now())
	}
	return models.CallError(ctx, Provider, answered.Load(), err) //nolint:wrapcheck // it makes the error, not passes one on
}
