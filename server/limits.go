package server

import (
	"net/http"

	"tarry/server/signin"
	"tarry/server/web"
)

// kinds says what calls of the API are counted as; the rest reads, or ends something.
func kinds() map[string]web.Kind {
	const user = "/apps/{app}/users/{user}"
	const one = user + "/sessions/{session}"
	of := map[web.Kind][]string{
		web.Runs: {"/run", "/run_sse", user + "/runs", user + "/sessions", one, one + "/artifacts"},
		web.Logins: {
			one + "/confirmations/{request}", one + "/inputs/{request}", one + "/keys/{request}", one + "/calls/{call}/result", user + "/logins/claim",
		},
	}
	out := map[string]web.Kind{}
	for kind, routes := range of {
		for _, route := range routes {
			out["POST "+route] = kind
		}
	}
	out["PATCH "+one], out["PATCH "+user+"/memory"] = web.Runs, web.Runs
	return out
}

// limited counts calls of the API.
func (s *Server) limited(limits *web.Limits, api *http.ServeMux) http.Handler {
	counted := kinds()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := api.Handler(r)
		if kind, ok := counted[pattern]; ok && !s.within(limits, kind, w, r) {
			return
		}
		api.ServeHTTP(w, r)
	})
}

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
	caller := signin.FromContext(r.Context())
	key := "subject " + caller.Subject
	switch caller.Mode {
	case signin.ModeNone:
		return true
	case signin.ModeGuest:
		key = "address " + s.Proxies.Key(r)
	}
	wait, ok := limits.Allow(kind, key)
	if ok {
		return true
	}
	s.Log.InfoContext(r.Context(), "too many requests", "kind", string(kind), "request_id", web.RequestID(r.Context()))
	web.TooMany(w, r, wait)
	return false
}
