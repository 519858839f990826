package tools_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/tools"
)

type named string

func (n named) Declaration() tools.Declaration { return tools.Declaration{Name: string(n)} }

func (named) Call(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }

func TestRegistry(t *testing.T) {
	t.Parallel()
	r, err := tools.NewRegistry(named("b"), named("a.x"))
	require.NoError(t, err)
	require.Equal(t, []string{"a.x", "b"}, r.Names())
	tool, ok := r.Tool("b")
	require.True(t, ok)
	require.Equal(t, named("b"), tool)
	_, ok = r.Tool("c")
	require.False(t, ok)
}

func TestRegistryRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		tools []tools.Tool
		says  string
	}{
		"no name":  {[]tools.Tool{named("")}, "has no name"},
		"reserved": {[]tools.Tool{named("transfer_to_agent")}, "reserved"},
		"twice":    {[]tools.Tool{named("a"), named("a")}, `two tools are called "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := tools.NewRegistry(tt.tools...)
			require.ErrorContains(t, err, tt.says)
		})
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	err := tools.Errorf("no room for %d", 3)
	require.EqualError(t, err, "no room for 3")
	require.NoError(t, errors.Unwrap(err))
	err.Cause = tools.ErrUnknown
	require.EqualError(t, err, "no room for 3")
	require.ErrorIs(t, err, tools.ErrUnknown)
}
