package session_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/session"
)

func delta(invocation string, d map[string]any) *session.Record {
	return &session.Record{Event: session.Event{InvocationID: invocation, Actions: session.Actions{StateDelta: d}}}
}

func TestFold(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for name, tt := range map[string]struct {
		initial, scoped m
		view            []*session.Record
		want            m
	}{
		"nothing":                 {nil, nil, nil, m{}},
		"initial":                 {m{"a": 1}, nil, nil, m{"a": 1}},
		"later wins":              {m{"a": 1}, nil, []*session.Record{delta("i", m{"a": 2}), delta("i", m{"a": 3, "b": 1})}, m{"a": 3, "b": 1}},
		"null deletes":            {m{"a": 1}, nil, []*session.Record{delta("i", m{"a": nil, "b": 1}), delta("i", m{"b": nil})}, m{}},
		"null, then a value":      {m{"a": 1}, nil, []*session.Record{delta("i", m{"a": nil}), delta("i", m{"a": 2})}, m{"a": 2}},
		"temp of this invocation": {nil, nil, []*session.Record{delta("i", m{"temp:a": 1}), delta("old", m{"temp:b": 1})}, m{"temp:a": 1}},
		"scopes come from their table": {
			nil,
			m{"app:x": 9, "user:y": 8},
			[]*session.Record{delta("i", m{"app:x": 1, "user:y": 1, "user:gone": 1})},
			m{"app:x": 9, "user:y": 8},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := len(tt.initial)
			require.Equal(t, tt.want, session.Fold(tt.initial, tt.scoped, tt.view, "i"))
			require.Len(t, tt.initial, before, "the initial state is not written to")
		})
	}
}

func TestClientDelta(t *testing.T) {
	t.Parallel()
	in := map[string]any{"app:x": 1, "temp:y": 1, "user:z": 1, "plain": nil, "application": 1}
	require.Equal(t, map[string]any{"user:z": 1, "plain": nil, "application": 1}, session.ClientDelta(in))
	require.Equal(t, map[string]any{}, session.ClientDelta(nil))
	require.Len(t, in, 5)
}
