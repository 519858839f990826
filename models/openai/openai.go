package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"tarry/auth"
	"tarry/models"
)

// Provider is the usual registry prefix, and the Provider of errors unless the configuration names another.
const Provider = "openai"

const defaultBaseURL = "https://api.openai.com/v1/"

// Config says how to reach a server.
type Config struct {
	// APIKey is sent as a bearer token. It may be empty only together with a BaseURL: local servers need none.
	APIKey auth.Secret
	// HTTPClient is required. Its Timeout, if any, covers a whole answer, also a streamed one.
	HTTPClient *http.Client
	// BaseURL is OpenAI's if empty; for other servers the URL up to and including "/v1".
	BaseURL string
	// Provider names the server in errors; "openai" if empty.
	Provider string
	// MaxTokensField sends the output limit as max_tokens instead of max_completion_tokens, for servers that know only
	// the older field.
	MaxTokensField bool
}

// Model is one model behind a Chat Completions endpoint.
type Model struct {
	name      string
	provider  string
	maxTokens bool
	chat      openai.ChatCompletionService
}

// Factory makes models for a registry.
func Factory(cfg Config) models.Factory {
	return func(_ context.Context, name string) (models.Model, error) {
		m, err := New(cfg, name)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

// New makes the model of a name such as "gpt-5". It sends nothing.
func New(cfg Config, name string) (*Model, error) {
	switch {
	case cfg.APIKey.IsZero() && cfg.BaseURL == "":
		return nil, errors.New("openai: no API key configured")
	case cfg.HTTPClient == nil:
		return nil, errors.New("openai: no HTTP client configured")
	case name == "":
		return nil, errors.New("openai: no model name")
	}
	baseURL := cfg.BaseURL
	if baseURL == "" {
		baseURL = defaultBaseURL
	}
	provider := cfg.Provider
	if provider == "" {
		provider = Provider
	}
	options := []option.RequestOption{
		option.WithBaseURL(strings.TrimRight(baseURL, "/") + "/"),
		option.WithHTTPClient(models.HTTPClient(provider, cfg.HTTPClient)),
		option.WithMaxRetries(0),
	}
	if !cfg.APIKey.IsZero() {
		options = append(options, option.WithAPIKey(cfg.APIKey.Reveal()))
	}
	return &Model{
		name: name, provider: provider, maxTokens: cfg.MaxTokensField,
		// Not openai.NewClient: that one takes key, organisation and further headers from the environment.
		chat: openai.NewChatService(options...).Completions,
	}, nil
}

// GenerateContent implements [models.Model].
func (m *Model) GenerateContent(ctx context.Context, req *models.Request, stream bool) iter.Seq2[*models.Response, error] {
	return func(yield func(*models.Response, error) bool) {
		params, err := m.params(req)
		if err != nil {
			yield(nil, err)
			return
		}
		var answered atomic.Bool
		traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			GotFirstResponseByte: func() { answered.Store(true) },
		})
		if stream {
			m.stream(traced, &answered, params, yield)
			return
		}
		completion, err := m.chat.New(traced, params)
		if err != nil {
			yield(nil, m.callError(ctx, &answered, err))
			return
		}
		out, err := m.whole(completion)
		yield(out, err)
	}
}

func (m *Model) stream(ctx context.Context, answered *atomic.Bool, params openai.ChatCompletionNewParams,
	yield func(*models.Response, error) bool,
) {
	params.StreamOptions.IncludeUsage = openai.Bool(true)
	chunks := m.chat.NewStreaming(ctx, params)
	defer func() { _ = chunks.Close() }()
	var all deltas
	for chunks.Next() {
		if partial := all.add(chunks.Current()); partial != nil && !yield(partial, nil) {
			return
		}
	}
	if err := chunks.Err(); err != nil {
		yield(nil, m.callError(ctx, answered, err))
		return
	}
	if ctx.Err() != nil {
		yield(nil, m.callError(ctx, answered, ctx.Err()))
		return
	}
	if !all.finished() {
		// The library takes a connection closed between two events for the end.
		yield(nil, &models.Error{Kind: models.KindNetwork, Provider: m.provider, Message: "stream ended early"})
		return
	}
	out, err := m.answer(all.message())
	yield(out, err)
}

func (m *Model) callError(ctx context.Context, answered *atomic.Bool, err error) error {
	var inStream *ssestream.StreamError
	if errors.As(err, &inStream) {
		err = models.StatusError(m.provider, 0, nil, models.ErrorReason(inStream.Event.Data), time.Now())
	}
	return models.CallError(ctx, m.provider, answered.Load(), err) //nolint:wrapcheck // it makes the error, not passes one on
}

func (m *Model) refuse(message string) error {
	return &models.Error{Kind: models.KindInvalid, Provider: m.provider, Message: message}
}
