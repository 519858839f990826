package server

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"tarry/agent"
	"tarry/auth/oauth"
	"tarry/outbox"
	"tarry/server/accounts"
	"tarry/server/adk"
	"tarry/server/connect"
	"tarry/server/openapi"
	"tarry/server/runs"
	"tarry/server/signin"
	"tarry/server/web"
)

// Server is the HTTP handler and the loops that belong to it.
type Server struct {
	Config
	handler    http.Handler
	dispatcher *outbox.Dispatcher
}

// New wires a server.
func New(c Config) (*Server, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	s := &Server{Config: c}
	s.dispatcher = outbox.New(c.Parts.Store, s.deliver, c.Log, c.Poll)
	limits := web.NewLimits(c.Rates, nil)
	ui := s.webUI()
	behind := logins{service: c.Parts.Logins, keys: c.Parts.Keys, inputs: c.Parts.Inputs, requests: c.Parts.Store, wake: s.dispatcher.Wake, parts: c.Parts, log: c.Log}
	pages, err := connect.New(connect.Config{PublicURL: c.PublicURL.String(), Logins: behind, ReturnTo: s.ReturnTo, Key: c.Parts.FormKey, Peer: c.Proxies.Key, Limits: limits, Log: c.Log})
	if err != nil {
		return nil, fmt.Errorf("connect pages: %w", err)
	}
	mux, api := http.NewServeMux(), http.NewServeMux()
	forms := s.limitedForms(limits)
	pages.Mount(mux, forms)
	c.SignIn.Limit(limits, c.Proxies)
	c.SignIn.Mount(mux)
	api.HandleFunc("GET /me", me)
	api.HandleFunc("POST /apps/{app}/users/{user}/logins/claim", behind.claim)
	s.adk().Mount(api)
	s.runs().Mount(api)
	own := &accounts.Handler{Log: c.Parts.Store, Connections: connected{c.Parts.Logins}, Logger: c.Log}
	own.Mount(api)
	ownPages, err := accounts.NewPages(own, c.PublicURL, c.Parts.FormKey)
	if err != nil {
		return nil, fmt.Errorf("accounts page: %w", err)
	}
	ownPages.Mount(mux, forms)
	if ui != nil {
		ui.Mount(mux, forms, c.SignIn.Require(signin.API))
	}
	if c.Metrics != nil {
		api.Handle("GET /metrics", ofOperators(c.Metrics))
	}
	mux.Handle("/", c.SignIn.Require(signin.API)(s.limited(limits, api)))
	mux.HandleFunc("GET "+oauth.MetadataPath, s.clientMetadata)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		web.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	mux.HandleFunc("GET /readyz", s.ready)
	description, err := openapi.New()
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	description.Mount(mux)
	s.handler = web.Chain(mux, web.Prefix(c.APIPrefix, ofAPI(mux)), web.RequestIDs(), web.Streams(isRunSSE), web.AccessLog(c.Log), web.Recover(c.Log), web.SecurityHeaders(), web.BodyTimeout(patience), web.WriteTimeout(patience), web.Cap(maxFile), web.CORS(c.Origins))
	return s, nil
}

// ofAPI says whether a request is for the API, and not for a page of our own.
func ofAPI(mux *http.ServeMux) func(*http.Request) bool {
	return func(r *http.Request) bool {
		_, pattern := mux.Handler(r)
		return pattern == "/"
	}
}

func (s *Server) adk() *adk.Handler {
	return &adk.Handler{
		Log: s.Parts.Store, Partials: s.Parts.Store, Apps: s.Parts.Store, Starter: steering{s}, Canceller: steering{s}, Find: s.Parts.Store, Requests: s.Parts.Store,
		Confirmations: s.Parts.Inputs, Answers: s.Parts.Inputs, Keys: s.Parts.Keys, Artifacts: s.Parts.Store, Memory: s.Parts.Store,
		Owner: owner, Operator: operator, Wake: s.dispatcher.Wake, PublicURL: s.PublicURL.String(), ReturnURLs: s.ReturnTo, Version: s.Version, Logger: s.Log,
	}
}

func (s *Server) runs() *runs.Handler {
	return &runs.Handler{
		Log: s.Parts.Store, Partials: s.Parts.Store, Apps: s.Parts.Store, Starter: steering{s}, Canceller: steering{s}, Histories: steering{s}, Lists: s.Parts.Store, Requests: s.Parts.Store, Confirmations: s.Parts.Inputs, Answers: s.Parts.Inputs, Keys: s.Parts.Keys,
		Owner: owner, Wake: s.dispatcher.Wake, PublicURL: s.PublicURL.String(), Logger: s.Log,
	}
}

// isRunSSE says whether clients read the answer as ADK's web UI does: frames alone, whatever the status.
func isRunSSE(r *http.Request) bool {
	return r.Method == http.MethodPost && (r.URL.Path == "/run_sse" || r.URL.Path == "/api/run_sse")
}

// owner is the only way from a request to an owner.
func owner(r *http.Request, app, user string) (agent.Owner, error) {
	o, err := signin.FromContext(r.Context()).Owner(app, user)
	if err != nil {
		return o, fmt.Errorf("owner: %w", err)
	}
	return o, nil
}

// Handler returns the HTTP handler.
func (s *Server) Handler() http.Handler { return s.handler }

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	if err := s.Parts.Store.Ping(ctx); err != nil {
		s.Log.WarnContext(ctx, "not ready", "err", err)
		web.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "not ready"})
		return
	}
	web.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// Run delivers messages to runs, finishes interrupted logins and reconciles runs that are gone, until ctx ends.
func (s *Server) Run(ctx context.Context) {
	var group sync.WaitGroup
	group.Go(func() { s.dispatcher.Run(ctx) })
	if s.Webhooks != nil {
		group.Go(func() { s.Webhooks.Run(ctx) })
	}
	group.Go(func() { s.every(ctx, s.Poll, "finish interrupted logins", s.recoverLogins) })
	group.Go(func() { s.every(ctx, s.Poll, "poll logins on other devices", s.pollDevices) })
	group.Go(func() { s.every(ctx, tellEvery, "tell redirect URIs", s.tellRedirectURIs()) })
	if s.Retention > 0 {
		group.Go(func() { s.every(ctx, purgeEvery, "purge old rows", s.purge) })
	}
	group.Go(func() { s.every(ctx, reconcileEvery, "reconcile runs", s.reconcile) })
	group.Wait()
}

func (s *Server) every(ctx context.Context, interval time.Duration, what string, f func(context.Context) error) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if err := f(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "background work", "operation", what, "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *Server) purge(ctx context.Context) error {
	n, err := s.Parts.Store.Purge(ctx, s.Retention)
	if n > 0 {
		s.Log.InfoContext(ctx, "old rows deleted", "count", n)
	}
	if err != nil {
		return fmt.Errorf("purge: %w", err)
	}
	return nil
}

func (s *Server) recoverLogins(ctx context.Context) error {
	n, err := s.Parts.Logins.Recover(ctx)
	if n > 0 {
		s.Log.InfoContext(ctx, "interrupted logins finished", "count", n)
		s.dispatcher.Wake()
	}
	if err != nil {
		return fmt.Errorf("recover: %w", err)
	}
	return nil
}
