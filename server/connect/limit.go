package connect

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// A peer may send unknownBurst answers that nobody waits for, and one more every unknownEvery.
const (
	unknownEvery = 3 * time.Second
	unknownBurst = 20
	// maxPeers bounds each of the two generations of peers.
	maxPeers = 1024
)

// limiter counts bad callbacks per peer. Good ones are free. Memory is bounded: when the young generation is full it
// becomes the old one, and peers not seen since are forgotten.
type limiter struct {
	mu    sync.Mutex
	young map[string]*rate.Limiter
	old   map[string]*rate.Limiter
}

func newLimiter() *limiter {
	return &limiter{young: map[string]*rate.Limiter{}}
}

// allows says whether the peer has a bad answer left.
func (l *limiter) allows(peer string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.young[peer]
	if !ok {
		one, ok = l.old[peer]
	}
	return !ok || one.TokensAt(now) >= 1
}

// count takes one from the peer.
func (l *limiter) count(peer string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one, ok := l.young[peer]
	if !ok {
		if one, ok = l.old[peer]; !ok {
			one = rate.NewLimiter(rate.Every(unknownEvery), unknownBurst)
		}
		if len(l.young) >= maxPeers {
			l.old, l.young = l.young, map[string]*rate.Limiter{}
		}
		l.young[peer] = one
	}
	one.AllowN(now, 1)
}
