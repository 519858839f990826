package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/store"
)

func TestPersonSessions(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other, now := twoServers(t, fresh)
			ann := auth.Person{Issuer: "https://issuer.example", Subject: "ann", Name: "Ann"}
			const idle = time.Hour

			require.NoError(t, s.StartPersonSession(t.Context(), "one", ann, 24*time.Hour, ""))
			got, err := other.PersonSession(t.Context(), "one", idle)
			require.NoError(t, err)
			require.Equal(t, auth.PersonSession{Person: ann, Created: *now, Expires: now.Add(24 * time.Hour)}, got)
			_, err = s.PersonSession(t.Context(), "two", idle)
			require.ErrorIs(t, err, auth.ErrNoSession)

			// Use keeps it alive until its absolute end.
			for range 23 {
				*now = now.Add(59 * time.Minute)
				_, err = s.PersonSession(t.Context(), "one", idle)
				require.NoError(t, err)
			}
			*now = now.Add(61 * time.Minute)
			_, err = s.PersonSession(t.Context(), "one", idle)
			require.ErrorIs(t, err, auth.ErrNoSession, "idle")
			require.NoError(t, s.StartPersonSession(t.Context(), "two", ann, 2*time.Hour, ""))
			for range 3 {
				*now = now.Add(39 * time.Minute)
				_, err = s.PersonSession(t.Context(), "two", idle)
				require.NoError(t, err)
			}
			*now = now.Add(3 * time.Minute)
			_, err = s.PersonSession(t.Context(), "two", idle)
			require.ErrorIs(t, err, auth.ErrNoSession, "lifetime")

			// A new one ends the one it replaces, and no other.
			require.NoError(t, s.StartPersonSession(t.Context(), "three", ann, 2*time.Hour, ""))
			require.NoError(t, s.StartPersonSession(t.Context(), "four", ann, 2*time.Hour, ""))
			require.NoError(t, s.StartPersonSession(t.Context(), "five", ann, 2*time.Hour, "three"))
			for id, there := range map[string]bool{"three": false, "four": true, "five": true} {
				_, err = s.PersonSession(t.Context(), id, idle)
				require.Equal(t, there, err == nil, id)
			}
			require.NoError(t, other.EndPersonSession(t.Context(), "five"))
			require.NoError(t, other.EndPersonSession(t.Context(), "five"))
			_, err = s.PersonSession(t.Context(), "five", idle)
			require.ErrorIs(t, err, auth.ErrNoSession)
		})
	}
}

func TestSignInsAreSpentOnce(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other, now := twoServers(t, fresh)
			require.NoError(t, s.SpendSignIn(t.Context(), "state", time.Minute))
			require.ErrorIs(t, other.SpendSignIn(t.Context(), "state", time.Minute), auth.ErrSpent)
			require.NoError(t, other.SpendSignIn(t.Context(), "other", time.Minute))
			*now = now.Add(time.Hour)
			require.NoError(t, s.SpendSignIn(t.Context(), "third", time.Minute))
			require.NoError(t, s.SpendSignIn(t.Context(), "state", time.Minute), "forgotten with the sign-in itself")
		})
	}
}

func TestParkedCallbacks(t *testing.T) {
	t.Parallel()
	for name, fresh := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, other, now := twoServers(t, fresh)
			take := func(nonce, service string) string {
				body, err := other.TakeCallback(t.Context(), nonce, service)
				if err != nil {
					require.ErrorIs(t, err, auth.ErrSpent)
				}
				return string(body)
			}
			park := func(nonce, state string) {
				require.NoError(t, s.ParkCallback(t.Context(), nonce, "shop", state, []byte("sealed "+nonce), time.Minute))
			}
			park("one", "state")
			require.Empty(t, take("one", "another"), "it is the service's")
			require.Equal(t, "sealed one", take("one", "shop"))
			require.Empty(t, take("one", "shop"), "once")
			park("two", "state")
			park("three", "state")
			require.Empty(t, take("two", "shop"), "the newest answer of a login counts")
			require.Equal(t, "sealed three", take("three", "shop"))
			park("four", "state")
			*now = now.Add(time.Hour)
			require.Empty(t, take("four", "shop"), "late")
		})
	}
}

// twoServers are two handles on one database, with one clock.
func twoServers(t *testing.T, fresh func(testing.TB) database) (one, other *store.Store, now *time.Time) {
	t.Helper()
	again := fresh(t)
	one, other = again(t), again(t)
	clock := time.Now().UTC().Truncate(time.Microsecond)
	one.SetClock(func() time.Time { return clock })
	other.SetClock(func() time.Time { return clock })
	return one, other, &clock
}
