package auth_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
)

func slot() auth.Slot {
	return auth.Slot{
		Owner: agent.Owner{App: "app", User: "ann"}, Domain: "d", Issuer: "https://as", Resource: "https://rs", Client: auth.ClientDynamic,
	}
}

func TestSlotIDIsStable(t *testing.T) {
	t.Parallel()
	require.Len(t, slot().ID(), 32)
	// It is a key in databases: a change would lose every login.
	require.Equal(t, "eb418be8c7", slot().ID()[:10])
}

func TestEveryPartOfASlotCounts(t *testing.T) {
	t.Parallel()
	seen := map[string]string{slot().ID(): "unchanged"}
	change := func(name string, f func(*auth.Slot)) {
		s := slot()
		f(&s)
		require.Empty(t, seen[s.ID()], name)
		seen[s.ID()] = name
	}
	fields := reflect.TypeFor[auth.Slot]()
	for i := range fields.NumField() {
		if fields.Field(i).Type.Kind() == reflect.String {
			change(fields.Field(i).Name, func(s *auth.Slot) { reflect.ValueOf(s).Elem().Field(i).SetString("other") })
			change("empty "+fields.Field(i).Name, func(s *auth.Slot) { reflect.ValueOf(s).Elem().Field(i).SetString("") })
		}
	}
	change("app", func(s *auth.Slot) { s.Owner.App = "b" })
	change("user", func(s *auth.Slot) { s.Owner.User = "bob" })
	change("app and user swapped", func(s *auth.Slot) { s.Owner.App, s.Owner.User = s.Owner.User, s.Owner.App })
	change("a character moved", func(s *auth.Slot) { s.Owner.App, s.Owner.User = "ap", "pann" })
	change("a part that looks like two", func(s *auth.Slot) { s.Owner.App, s.Owner.User = "app3:ann", "" })
}

func TestCovers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		granted, wanted []string
		want            bool
	}{
		{nil, nil, true},
		{[]string{"a"}, nil, true},
		{[]string{"a", "b"}, []string{"b"}, true},
		{[]string{"a"}, []string{"a", "b"}, false},
		{nil, []string{"a"}, false},
		{[]string{"a b"}, []string{"a"}, false},
	} {
		require.Equal(t, tc.want, auth.Covers(tc.granted, tc.wanted), "%v for %v", tc.granted, tc.wanted)
	}
}

func TestUnion(t *testing.T) {
	t.Parallel()
	in := []string{"c", "a"}
	require.Equal(t, []string{"a", "b", "c"}, auth.Union(in, []string{"b", "a"}, nil))
	require.Equal(t, []string{"c", "a"}, in, "the sets stay as they are")
	require.Empty(t, auth.Union())
}

func TestStatusOpen(t *testing.T) {
	t.Parallel()
	for status, open := range map[auth.Status]bool{
		auth.StatusPending: true, auth.StatusExchanging: true,
		auth.StatusGranted: false, auth.StatusDenied: false, auth.StatusExpired: false, auth.StatusCancelled: false, "": false,
	} {
		require.Equal(t, open, status.Open(), "%q", status)
	}
}

func ExampleCovers() {
	granted := []string{"mail.read", "mail.send"}
	fmt.Println(auth.Covers(granted, []string{"mail.read"}), auth.Covers(granted, []string{"mail.delete"}))
	// Output: true false
}
