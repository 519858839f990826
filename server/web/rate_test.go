package web_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/server/web"
)

func TestLimits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := web.NewLimits(web.Rates{web.Runs: 60, web.Tokens: 1}, func() time.Time { return now })
	for i := range 60 {
		_, ok := l.Allow(web.Runs, "ann")
		require.True(t, ok, i)
	}
	wait, ok := l.Allow(web.Runs, "ann")
	require.False(t, ok)
	require.InDelta(t, time.Second, wait, float64(time.Millisecond))
	require.True(t, l.Spent(web.Runs, "ann"))
	_, ok = l.Allow(web.Runs, "bob")
	require.True(t, ok, "another caller")
	_, ok = l.Allow(web.Tokens, "ann")
	require.True(t, ok, "another kind")
	for range 1000 {
		_, ok = l.Allow(web.Logins, "ann")
		require.True(t, ok, "without a rate there is no limit")
	}
	now = now.Add(wait)
	require.False(t, l.Spent(web.Runs, "ann"))
	_, ok = l.Allow(web.Runs, "ann")
	require.True(t, ok)
	_, ok = l.Allow(web.Runs, "ann")
	require.False(t, ok, "what is refused is not counted, and one has come back")

	// Memory is bounded, and who is noisy is not forgotten by the crowd while it goes on.
	for i := range 30_000 {
		_, ok = l.Allow(web.Tokens, fmt.Sprint("peer", i))
		require.True(t, ok)
		if i%5000 == 0 {
			require.True(t, l.Spent(web.Tokens, "ann"))
		}
	}
	for i := range 10_000 {
		l.Spent(web.Tokens, fmt.Sprint("other", i))
	}
	require.False(t, l.Spent(web.Tokens, "ann"), "forgotten")

	var none *web.Limits
	_, ok = none.Allow(web.Runs, "ann")
	require.True(t, ok)

	many := web.NewLimits(web.Rates{web.Runs: 100}, func() time.Time { return now })
	var group sync.WaitGroup
	var allowed atomic.Int64
	for range 8 {
		group.Go(func() {
			for range 100 {
				if _, ok := many.Allow(web.Runs, "ann"); ok {
					allowed.Add(1)
				}
			}
		})
	}
	group.Wait()
	require.EqualValues(t, 100, allowed.Load())
}

func TestHold(t *testing.T) {
	t.Parallel()
	l := web.NewLimits(web.Rates{web.OpenStreams: 2}, nil)
	first, ok := l.Hold("ann")
	require.True(t, ok)
	second, ok := l.Hold("ann")
	require.True(t, ok)
	for range 3 { // what is refused is not counted
		_, ok = l.Hold("ann")
		require.False(t, ok)
	}
	other, ok := l.Hold("bob")
	require.True(t, ok, "another caller")
	first()
	third, ok := l.Hold("ann")
	require.True(t, ok)
	second()
	third()
	other()

	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				if release, ok := l.Hold("ann"); ok {
					release()
				}
			}
		})
	}
	group.Wait()
	for range 2 {
		_, ok = l.Hold("ann")
		require.True(t, ok, "all were released")
	}

	var none *web.Limits
	for _, unlimited := range []*web.Limits{none, web.NewLimits(web.Rates{}, nil)} {
		for range 5000 {
			release, ok := unlimited.Hold("ann")
			require.True(t, ok)
			release()
		}
	}
}

func TestTooMany(t *testing.T) {
	t.Parallel()
	for accept, kind := range map[string]string{"": "application/json", "text/html": "text/html; charset=utf-8"} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/run", http.NoBody)
		r.Header.Set("Accept", accept)
		web.TooMany(w, r, 1500*time.Millisecond)
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.Equal(t, kind, w.Header().Get("Content-Type"))
		require.Contains(t, w.Body.String(), "too many requests")
	}
	require.Equal(t, "callbacks=20,logins=600,runs=6000,signins=600,streams=1000,tokens=120", web.DefaultRates().String())
}
