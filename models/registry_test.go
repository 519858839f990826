package models_test

import (
	"context"
	"errors"
	"iter"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/models"
)

type named string

func (named) GenerateContent(context.Context, *models.Request, bool) iter.Seq2[*models.Response, error] {
	return func(func(*models.Response, error) bool) {}
}

func factory(prefix string) models.Factory {
	return func(_ context.Context, name string) (models.Model, error) { return named(prefix + ":" + name), nil }
}

func TestResolve(t *testing.T) {
	t.Parallel()
	var r models.Registry
	for _, prefix := range []string{"gemini", "openai", "anthropic", "scripted"} {
		require.NoError(t, r.Register(prefix, factory(prefix)))
	}
	for name, want := range map[string]string{
		"gemini/gemini-2.5-pro":     "gemini:gemini-2.5-pro",
		"gemini-2.0-flash":          "gemini:gemini-2.0-flash",
		"gpt-5-mini":                "openai:gpt-5-mini",
		"o3-mini":                   "openai:o3-mini",
		"openai/meta/llama-3":       "openai:meta/llama-3",
		"claude-sonnet-4":           "anthropic:claude-sonnet-4",
		"scripted/demo.yaml":        "scripted:demo.yaml",
		"scripted/folder/demo.yaml": "scripted:folder/demo.yaml",
	} {
		m, err := r.Resolve(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, named(want), m)
	}
	for _, name := range []string{"", "llama", "mistral/large", "gemini/"} {
		_, err := r.Resolve(t.Context(), name)
		var unknown *models.UnknownModelError
		require.ErrorAs(t, err, &unknown)
		require.Equal(t, []string{"anthropic", "gemini", "openai", "scripted"}, unknown.Prefixes)
		require.ErrorContains(t, err, "anthropic/…, gemini/…, openai/…, scripted/…")
	}
}

func TestRegisterRefuses(t *testing.T) {
	t.Parallel()
	r := models.NewRegistry()
	require.NoError(t, r.Register("a", factory("a")))
	require.ErrorContains(t, r.Register("a", factory("a")), "already")
	require.Error(t, r.Register("", factory("")))
	require.Error(t, r.Register("a/b", factory("")))
	require.Error(t, r.Register("b", nil))
}

func TestFactoryIsCalledOncePerName(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	r := models.NewRegistry()
	require.NoError(t, r.Register("gemini", func(_ context.Context, name string) (models.Model, error) {
		calls.Add(1)
		return named(name), nil
	}))
	var wg sync.WaitGroup
	for i := range 50 {
		name := []string{"gemini-x", "gemini/gemini-x"}[i%2]
		wg.Go(func() {
			_, err := r.Resolve(t.Context(), name)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.Equal(t, int32(1), calls.Load())
}

func TestFactoryFailureIsNotKept(t *testing.T) {
	t.Parallel()
	broken := errors.New("no key")
	r := models.NewRegistry()
	require.NoError(t, r.Register("p", func(_ context.Context, name string) (models.Model, error) {
		if broken != nil {
			return nil, broken
		}
		return named(name), nil
	}))
	_, err := r.Resolve(t.Context(), "p/m")
	require.ErrorIs(t, err, broken)
	broken = nil
	_, err = r.Resolve(t.Context(), "p/m")
	require.NoError(t, err)
}

func TestWaiterOutlivesCancelledCaller(t *testing.T) {
	t.Parallel()
	started := make(chan struct{})
	var calls atomic.Int32
	r := models.NewRegistry()
	require.NoError(t, r.Register("p", func(ctx context.Context, name string) (models.Model, error) {
		if calls.Add(1) > 1 {
			return named(name), nil
		}
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	first, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := r.Resolve(first, "p/m"); !errors.Is(err, context.Canceled) {
			t.Errorf("want cancelled, got %v", err)
		}
	})
	<-started
	wg.Go(func() {
		if _, err := r.Resolve(t.Context(), "p/m"); err != nil {
			t.Error(err)
		}
	})
	cancel()
	wg.Wait()
}

func TestEnsureUserTurn(t *testing.T) {
	t.Parallel()
	require.Equal(t, models.StartText, models.EnsureUserTurn(nil)[0].Parts[0].Text)

	user := genai.NewContentFromText("hi", genai.RoleUser)
	require.Len(t, models.EnsureUserTurn([]*genai.Content{user}), 1)

	require.Len(t, models.EnsureUserTurn([]*genai.Content{nil}), 1)

	in := append(make([]*genai.Content, 0, 9), user, genai.NewContentFromText("hello", genai.RoleModel))
	out := models.EnsureUserTurn(in)
	require.Equal(t, models.ContinueText, out[2].Parts[0].Text)
	require.Nil(t, in[:3][2], "the caller's array is not written to")
}
