package models

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Factory makes the model of a name. The name comes without the registry's prefix: "gemini-2.5-pro".
type Factory func(ctx context.Context, name string) (Model, error)

// Registry finds models by name: "gemini/gemini-2.5-pro" is the model "gemini-2.5-pro" of the factory "gemini". Names
// without a slash, as ADK samples use them, go to the provider that owns the family: gemini-… and gemma-… to "gemini",
// gpt-…, chatgpt-… and o1, o3, o4 to "openai", claude-… to "anthropic".
//
// The zero value is empty and ready. It is safe for concurrent use.
type Registry struct {
	mu        sync.Mutex
	factories map[string]Factory
	models    map[string]*entry
}

type entry struct {
	done  chan struct{} // closed when model and err are set
	model Model
	err   error
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{} }

// Register adds the factory of a prefix. A prefix is registered once, is not empty and has no slash.
func (r *Registry) Register(prefix string, factory Factory) error {
	if prefix == "" || strings.Contains(prefix, "/") {
		return fmt.Errorf("register model prefix %q: want a word without a slash", prefix)
	}
	if factory == nil {
		return fmt.Errorf("register model prefix %q: no factory", prefix)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.factories[prefix]; ok {
		return fmt.Errorf("register model prefix %q: registered already", prefix)
	}
	if r.factories == nil {
		r.factories = map[string]Factory{}
	}
	r.factories[prefix] = factory
	return nil
}

// Resolve returns the model of a name. Its factory is called once per name, also when many ask at the same time; a
// failure is not kept, so that the next call tries again. An unknown name is an *[UnknownModelError].
func (r *Registry) Resolve(ctx context.Context, name string) (Model, error) {
	for {
		e, mine, err := r.claim(name)
		if err != nil {
			return nil, err
		}
		if mine != nil {
			mine(ctx)
		}
		select {
		case <-e.done:
		case <-ctx.Done():
			return nil, fmt.Errorf("resolve model %q: %w", name, ctx.Err())
		}
		// The one who called the factory may have been cancelled; those who only waited try for themselves.
		ended := errors.Is(e.err, context.Canceled) || errors.Is(e.err, context.DeadlineExceeded)
		if mine == nil && ended && ctx.Err() == nil {
			continue
		}
		return e.model, e.err
	}
}

// claim returns the entry of a name and, to the first who asks, the function that fills it.
func (r *Registry) claim(name string) (*entry, func(context.Context), error) {
	prefix, rest := split(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	factory, ok := r.factories[prefix]
	if !ok || rest == "" {
		return nil, nil, &UnknownModelError{Name: name, Prefixes: r.prefixes()}
	}
	key := prefix + "/" + rest // so that a bare name and the full one share a model
	if e, ok := r.models[key]; ok {
		return e, nil, nil
	}
	e := &entry{done: make(chan struct{}), err: fmt.Errorf("resolve model %q: factory did not return", name)}
	if r.models == nil {
		r.models = map[string]*entry{}
	}
	r.models[key] = e
	fill := func(ctx context.Context) {
		defer func() { // deferred: a factory that panics must not leave others waiting
			if e.err != nil {
				r.mu.Lock()
				delete(r.models, key)
				r.mu.Unlock()
			}
			close(e.done)
		}()
		model, err := factory(ctx, rest)
		switch {
		case err != nil:
			e.err = fmt.Errorf("resolve model %q: %w", name, err)
		case model == nil:
			e.err = fmt.Errorf("resolve model %q: factory returned no model", name)
		default:
			e.model, e.err = model, nil
		}
	}
	return e, fill, nil
}

func (r *Registry) prefixes() []string {
	out := make([]string, 0, len(r.factories))
	for p := range r.factories {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

// Provider is the prefix under which the model of a name is registered; empty if the name tells none.
func Provider(name string) string {
	prefix, _ := split(name)
	return prefix
}

func split(name string) (prefix, rest string) {
	if prefix, rest, ok := strings.Cut(name, "/"); ok {
		return prefix, rest
	}
	for _, family := range []struct{ start, prefix string }{
		{"gemini-", "gemini"},
		{"gemma-", "gemini"},
		{"gpt-", "openai"},
		{"chatgpt-", "openai"},
		{"o1", "openai"},
		{"o3", "openai"},
		{"o4", "openai"},
		{"claude-", "anthropic"},
	} {
		if strings.HasPrefix(name, family.start) {
			return family.prefix, name
		}
	}
	return "", name
}

// UnknownModelError is a model name whose provider is not registered.
type UnknownModelError struct {
	Name string
	// Prefixes are the registered ones, sorted.
	Prefixes []string
}

// Error implements error.
func (e *UnknownModelError) Error() string {
	known := "no provider is registered"
	if len(e.Prefixes) > 0 {
		known = "registered: " + strings.Join(e.Prefixes, "/…, ") + "/…"
	}
	return fmt.Sprintf("unknown model %q: want <provider>/<model>; %s", e.Name, known)
}
