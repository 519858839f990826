package web

import (
	"container/list"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Kind is what is counted together.
type Kind string

// What callers may send so often.
const (
	// Runs are runs that are started and messages that are posted, by subject.
	Runs Kind = "runs"
	// Logins are forms of the connect and account pages, keys that are sent, and claims of services, by subject.
	Logins Kind = "logins"
	// SignIns are sign-ins that are begun, by address.
	SignIns Kind = "signins"
	// Tokens are bearer tokens that are not valid, by address.
	Tokens Kind = "tokens"
	// Callbacks are answers of providers that belong to no login, by address.
	Callbacks Kind = "callbacks"
	// OpenStreams are answers that are waited for or read along, by subject: not how many in a minute, but how many at once.
	OpenStreams Kind = "streams"
)

// Rates says how much of each kind one caller may send in a minute; as much may come at once. Of [OpenStreams] it says how many may be
// open at once. A kind that is missing, or 0, has no limit.
type Rates map[Kind]int

// DefaultRates are far above what people and their programs do.
func DefaultRates() Rates {
	return Rates{Runs: 6000, Logins: 600, SignIns: 600, Tokens: 120, Callbacks: 20, OpenStreams: 1000}
}

// String implements fmt.Stringer, in the form of TARRY_RATE.
func (r Rates) String() string {
	var out []string
	for kind, n := range r {
		out = append(out, fmt.Sprintf("%s=%d", kind, n))
	}
	slices.Sort(out)
	return strings.Join(out, ",")
}

// maxCallers bounds the callers that are remembered of each kind: who was seen longest ago is forgotten, and has its full
// measure again.
const maxCallers = 10_000

// Limits counts what callers send, each for itself, in the memory of this process: of several servers each counts for itself.
// The nil Limits has none. Safe for concurrent use.
type Limits struct {
	rates Rates
	now   func() time.Time

	mu      sync.Mutex
	callers map[Kind]*callers
	// open counts streams by caller; who has none is not in it.
	open map[string]int
}

// callers are those of one kind, the one that was seen last in front.
type callers struct {
	order *list.List
	by    map[string]*list.Element
}

type caller struct {
	id    string
	limit *rate.Limiter
}

// NewLimits makes limits. now is for tests; nil is the clock.
func NewLimits(rates Rates, now func() time.Time) *Limits {
	if now == nil {
		now = time.Now
	}
	return &Limits{rates: rates, now: now, callers: map[Kind]*callers{}, open: map[string]int{}}
}

// Allow counts one and says whether it is within the caller's measure; if not, wait is when the next one will be.
func (l *Limits) Allow(kind Kind, key string) (wait time.Duration, ok bool) {
	return l.take(kind, key, 1)
}

// Hold counts one of [OpenStreams] until release is called, which must be, once.
func (l *Limits) Hold(key string) (release func(), ok bool) {
	if l == nil || l.rates[OpenStreams] <= 0 {
		return func() {}, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open[key] >= l.rates[OpenStreams] {
		return nil, false
	}
	l.open[key]++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.open[key]--; l.open[key] == 0 {
			delete(l.open, key)
		}
	}, true
}

// Spent says whether the caller has nothing left, without counting.
func (l *Limits) Spent(kind Kind, key string) bool {
	_, ok := l.take(kind, key, 0)
	return !ok
}

func (l *Limits) take(kind Kind, key string, n int) (wait time.Duration, ok bool) {
	if l == nil || l.rates[kind] <= 0 {
		return 0, true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one, now := l.caller(kind, key), l.now()
	left := one.TokensAt(now)
	if left < 1 {
		return time.Duration((1 - left) / float64(one.Limit()) * float64(time.Second)), false
	}
	return 0, one.AllowN(now, n)
}

// caller finds the caller, or makes room for it.
func (l *Limits) caller(kind Kind, key string) *rate.Limiter {
	of, ok := l.callers[kind]
	if !ok {
		of = &callers{order: list.New(), by: map[string]*list.Element{}}
		l.callers[kind] = of
	}
	if e, ok := of.by[key]; ok {
		of.order.MoveToFront(e)
		return e.Value.(*caller).limit
	}
	if of.order.Len() >= maxCallers {
		oldest := of.order.Back()
		delete(of.by, of.order.Remove(oldest).(*caller).id)
	}
	n := l.rates[kind]
	made := &caller{key, rate.NewLimiter(rate.Limit(float64(n)/time.Minute.Seconds()), n)}
	of.by[key] = of.order.PushFront(made)
	return made.limit
}

// RetryAfter says when to come back, in whole seconds (RFC 9110 section 10.2.3).
func RetryAfter(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(wait.Seconds())))))
}

// TooMany answers 429 (RFC 6585 section 4): a page where the client prefers one.
func TooMany(w http.ResponseWriter, r *http.Request, wait time.Duration) {
	RetryAfter(w, wait)
	Error(w, r, http.StatusTooManyRequests, "too many requests; Retry-After says in how many seconds to try again")
}

// TooManyStreams answers 429 to who has too many of [OpenStreams] open. When one will end nobody knows.
func TooManyStreams(w http.ResponseWriter, r *http.Request) {
	RetryAfter(w, time.Second)
	Error(w, r, http.StatusTooManyRequests, "too many answers are waited for at once; end one of them first")
}
