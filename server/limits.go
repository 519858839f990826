package server

import (
	"net/http"
	"strings"

	"tarry/server/signin"
	"tarry/server/web"
	"tarry/session"
)

const (
	// maxBody bounds what a request holds, in bytes.
	maxBody = 4 << 20
	// maxMessage is for messages, which may hold images: base64 makes 16 MB of 12.
	maxMessage = 16 << 20
	// maxFile is for one version of an artifact, which [session.MaxArtifact] bounds, as base64.
	maxFile = session.MaxArtifact/3*4 + maxBody
)

const (
	ofUser    = "/apps/{app}/users/{user}"
	ofSession = ofUser + "/sessions/{session}"
)

// measure is what a route of the API may take.
type measure struct {
	// kind is what its calls are counted as; empty: not at all.
	kind web.Kind
	// body is in bytes.
	body int64
	// streams says whether a request is answered for as long as something goes on; nil: never.
	streams func(*http.Request) bool
}

// measureOf goes by a route's pattern. What writes counts as a run, also what is added one day; what only reads or ends something
// does not, so that whoever has started too much can stop it.
func measureOf(pattern string) measure {
	method, path, _ := strings.Cut(pattern, " ")
	path = strings.TrimPrefix(path, "/api") // ADK's routes may have it
	out := measure{kind: web.Runs, body: maxBody}
	switch path {
	case ofSession + "/confirmations/{request}", ofSession + "/inputs/{request}", ofSession + "/keys/{request}", ofSession + "/calls/{call}/result", ofUser + "/logins/claim":
		out.kind = web.Logins
	case ofSession + "/cancel", ofSession + "/calls/{call}/cancel", ofUser + "/accounts/{account}/revoke":
		out.kind = ""
	case "/run", "/run_sse":
		out.body, out.streams = maxMessage, always
	case ofSession + "/events":
		out.streams = follows
	case ofSession + "/artifacts":
		out.body = maxFile
	}
	if method == "" || web.Safe(method) || method == http.MethodDelete {
		out.kind = ""
	}
	return out
}

func always(*http.Request) bool { return true }

func follows(r *http.Request) bool { return web.Truth(r, "follow") }

// limited counts calls of the API, and bounds what they send.
func (s *Server) limited(limits *web.Limits, api *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler, pattern := api.Handler(r)
		if pattern == "" {
			noRoute(w, r, handler)
			return
		}
		m := measureOf(pattern)
		if m.kind != "" && !s.within(limits, m.kind, w, r) {
			return
		}
		if m.streams != nil && m.streams(r) {
			release, ok := s.hold(limits, w, r)
			if !ok {
				return
			}
			defer release()
		}
		r.Body = http.MaxBytesReader(w, r.Body, m.body)
		api.ServeHTTP(w, r)
	})
}

// noRoute answers what no route serves as other refusals are answered: with the status, and for 405 the Allow header, of
// [http.ServeMux], which says it in plain text.
func noRoute(w http.ResponseWriter, r *http.Request, of http.Handler) {
	said := &statusOnly{header: http.Header{}}
	of.ServeHTTP(said, r)
	if said.status != http.StatusMethodNotAllowed {
		web.Error(w, r, http.StatusNotFound, "there is no such route; GET /openapi.json lists those there are")
		return
	}
	allow := said.header.Get("Allow")
	w.Header().Set("Allow", allow)
	web.Error(w, r, said.status, "this route takes "+allow)
}

// statusOnly is where an answer goes of which only the head matters.
type statusOnly struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (s *statusOnly) Header() http.Header { return s.header }

// Write implements http.ResponseWriter.
func (s *statusOnly) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (s *statusOnly) WriteHeader(status int) { s.status = status }

// limitedForms is the sign-in of pages, and counts their forms.
func (s *Server) limitedForms(limits *web.Limits) web.Middleware {
	signIn := s.SignIn.Require(signin.Forms)
	return func(next http.Handler) http.Handler {
		return signIn(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if web.Safe(r.Method) || s.within(limits, web.Logins, w, r) {
				next.ServeHTTP(w, r)
			}
		}))
	}
}

// within counts by who has signed in, or by address where nobody has. The one operator of a server without sign-in has no limit:
// there is nobody else to protect.
func (s *Server) within(limits *web.Limits, kind web.Kind, w http.ResponseWriter, r *http.Request) bool {
	key, counted := s.callerOf(r)
	if !counted {
		return true
	}
	wait, ok := limits.Allow(kind, key)
	if ok {
		return true
	}
	s.Log.InfoContext(r.Context(), "too many requests", "kind", string(kind), "request_id", web.RequestID(r.Context()))
	web.TooMany(w, r, wait)
	return false
}

// hold counts an answer that goes on, until it is released.
func (s *Server) hold(limits *web.Limits, w http.ResponseWriter, r *http.Request) (release func(), ok bool) {
	key, counted := s.callerOf(r)
	if !counted {
		return func() {}, true
	}
	if release, ok = limits.Hold(key); !ok {
		s.Log.InfoContext(r.Context(), "too many requests", "kind", string(web.OpenStreams), "request_id", web.RequestID(r.Context()))
		web.TooManyStreams(w, r)
	}
	return release, ok
}

// callerOf names who is counted; counted is false for who has no limit.
func (s *Server) callerOf(r *http.Request) (key string, counted bool) {
	caller := signin.FromContext(r.Context())
	switch caller.Mode {
	case signin.ModeNone:
		return "", false
	case signin.ModeGuest:
		return "address " + s.Proxies.Key(r), true
	}
	return "subject " + caller.Subject, true
}
