package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"
)

const (
	// metadataLife is how long metadata is good; keys are fetched anew whenever one is unknown.
	metadataLife = time.Hour
	// fetchTimeout bounds a request to an issuer.
	fetchTimeout = 10 * time.Second
	// An issuer is asked at most once every fetchEvery, fetchBurst times before that: whoever makes up key ids in tokens
	// could else have us ask it for keys all the time.
	fetchEvery = 5 * time.Second
	fetchBurst = 10
)

var errUnavailable = errors.New("issuer cannot be reached")

// issuer is an OpenID provider or authorization server that is looked up when it is needed first: a server that starts
// while its provider is down still takes callbacks.
type issuer struct {
	name string
	http *http.Client

	mu    sync.Mutex
	found *metadata
	until time.Time
}

// metadata is what an issuer says of itself.
type metadata struct {
	*oidc.Provider
	more struct {
		EndSession   string   `json:"end_session_endpoint"`
		AuthMethods  []string `json:"token_endpoint_auth_methods_supported"`
		IssSupported bool     `json:"authorization_response_iss_parameter_supported"`
	}
}

func newIssuer(name string, client *http.Client) *issuer {
	limited := *client
	limited.Transport = &throttle{next: client.Transport, limit: rate.NewLimiter(rate.Every(fetchEvery), fetchBurst)}
	return &issuer{name: name, http: &limited}
}

// discover returns the issuer's metadata. What was found before is used while the issuer cannot be reached.
func (i *issuer) discover(ctx context.Context) (*metadata, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found != nil && time.Now().Before(i.until) {
		return i.found, nil
	}
	// Whoever waits for the answer shares it: one client that goes away must not end it for all.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	defer cancel()
	p, err := oidc.NewProvider(oidc.ClientContext(ctx, i.http), i.name)
	if err == nil {
		found := &metadata{Provider: p}
		if err = p.Claims(&found.more); err == nil {
			i.found, i.until = found, time.Now().Add(metadataLife)
			return found, nil
		}
	}
	if i.found != nil {
		i.until = time.Now().Add(fetchTimeout)
		return i.found, nil
	}
	return nil, fmt.Errorf("%w: %s", errUnavailable, brief(err))
}

// throttle refuses GET requests beyond a limit.
type throttle struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// RoundTrip implements [http.RoundTripper].
func (t *throttle) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && !t.limit.Allow() {
		return nil, fmt.Errorf("%w: asked too often", errUnavailable)
	}
	return t.next.RoundTrip(r) //nolint:wrapcheck // an http.RoundTripper passes on what it wraps
}
