package session

import (
	"maps"
	"strings"
)

// Scope prefixes of state keys, as in ADK.
const (
	ScopeApp  = "app:"
	ScopeUser = "user:"
	ScopeTemp = "temp:"
)

// Fold computes session state: the initial state, then every delta of the view in order, over what app and user scopes
// hold. A null deletes a key. temp: keys live for one invocation: those of other invocations than the given are left out.
func Fold(initial, scoped map[string]any, view []*Record, invocation string) map[string]any {
	state := maps.Clone(initial)
	if state == nil {
		state = map[string]any{}
	}
	for _, r := range view {
		for key, value := range r.Actions.StateDelta {
			switch {
			case strings.HasPrefix(key, ScopeApp), strings.HasPrefix(key, ScopeUser):
				continue // the scope's own table is newer: other sessions write it too
			case strings.HasPrefix(key, ScopeTemp) && r.InvocationID != invocation:
				continue
			case value == nil:
				delete(state, key)
			default:
				state[key] = value
			}
		}
	}
	maps.Copy(state, scoped)
	return state
}

// ClientDelta drops from a delta what clients may not write: app: state is everybody's, and temp: is nobody's after the
// invocation.
func ClientDelta(delta map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range delta {
		if !strings.HasPrefix(key, ScopeApp) && !strings.HasPrefix(key, ScopeTemp) {
			out[key] = value
		}
	}
	return out
}
