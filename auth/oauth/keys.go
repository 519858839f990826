package oauth

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
)

// maxKeySets bounds how many providers' keys are kept.
const maxKeySets = 200

// keySets keeps the keys of providers, by their address. The zero value is ready; safe for concurrent use.
type keySets struct {
	mu   sync.Mutex
	sets map[string]*keySet
}

// keySet is an [oidc.KeySet] that knows whether its failures are the network's.
type keySet struct {
	*oidc.RemoteKeySet
	watch *watch
}

func (k *keySet) failures() int64 { return k.watch.failed.Load() }

func (k *keySets) of(address string, client *http.Client) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if set, ok := k.sets[address]; ok {
		return set
	}
	if k.sets == nil || len(k.sets) >= maxKeySets {
		k.sets = map[string]*keySet{}
	}
	guarded := *client
	w := &watch{next: client.Transport}
	guarded.Transport = w
	// The set outlives the login that asks for it first.
	set := &keySet{RemoteKeySet: oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), &guarded), address), watch: w}
	k.sets[address] = set
	return set
}

// watch counts requests that brought nothing.
type watch struct {
	next   http.RoundTripper
	failed atomic.Int64
}

func (w *watch) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.failed.Add(1)
	}
	return resp, err //nolint:wrapcheck // a transport hands on what it gets
}
