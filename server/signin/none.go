package signin

import (
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"tarry/agent"
	"tarry/server/web"
)

// Route says how a route protects itself against other sites.
type Route int

const (
	// API routes take JSON only, which another site's page cannot send without a preflight request.
	API Route = iota
	// Forms routes check a CSRF token in every handler that changes something, and their GET only renders or is protected
	// by a secret of its own. Other sites may link and redirect to them.
	Forms
)

// Mode is a way to sign in.
type Mode interface {
	// Require lets authenticated callers through, with their [Principal] in the context.
	Require(route Route) web.Middleware
	// Mount adds the mode's own routes to mux.
	Mount(mux *http.ServeMux)
	// Limit bounds what callers may send who have not signed in, by the address that peers tell. It is called before any other.
	Limit(limits *web.Limits, peers Peers)
}

// ModeNone is the mode of [None].
const ModeNone = "none"

// None is the mode without sign-in: whoever sits at this machine is the operator, who may act for every owner. User ids
// in paths are labels then, which still separate sessions and credentials.
type None struct {
	// Port is the port that browsers see; zero means the one that the connection came in on.
	Port int
	// Origins are further origins whose pages may call, such as a UI under development on another port.
	Origins web.Origins
	Log     *slog.Logger
}

var _ Mode = None{}

// Limit implements [Mode]: nobody else gets in.
func (None) Limit(*web.Limits, Peers) {}

// Require implements [Mode].
func (n None) Require(route Route) web.Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if no := n.refusal(r, route); no != nil {
				n.Log.WarnContext(r.Context(), "request refused", "reason", no.reason, "request_id", web.RequestID(r.Context()))
				web.Error(w, r, no.status, no.text)
				return
			}
			next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), Operator())))
		})
	}
}

// Mount implements [Mode]: there is nowhere to sign in.
func (None) Mount(*http.ServeMux) {}

// Operator is the principal of [None]. Its own user id is the one that the command line uses.
func Operator() Principal {
	p := NewPrincipal("local operator", "local", func(agent.Owner) bool { return true })
	p.User, p.Mode = "user", ModeNone
	return p
}

type refusal struct {
	status int
	// reason is for the log, text for the caller.
	reason, text string
}

func (n None) refusal(r *http.Request, route Route) *refusal {
	const local = "this server serves its own machine only; set up a sign-in mode to open it to others"
	switch {
	case !loopback(r.RemoteAddr):
		return &refusal{http.StatusForbidden, "peer is not loopback", local}
	case forwarded(r.Header):
		return &refusal{http.StatusForbidden, "request was forwarded by a proxy", local}
	case !n.ownHost(r):
		// A name that somebody else's DNS points at 127.0.0.1 is still their origin to the browser.
		return &refusal{http.StatusForbidden, "host is not this server's", "open this server as localhost, with its own port"}
	case !web.Sender{Own: scheme(r) + "://" + r.Host, Allowed: n.Origins, Form: route == Forms}.Allows(r):
		return otherOrigin()
	}
	return notJSON(r, route)
}

func otherOrigin() *refusal {
	return &refusal{http.StatusForbidden, "request of another origin", "requests of other sites are not allowed; the operator lists those that are in TARRY_ALLOW_ORIGINS"}
}

// notJSON refuses bodies that another site's page can send without a preflight request.
func notJSON(r *http.Request, route Route) *refusal {
	if route == API && !web.Safe(r.Method) && r.ContentLength != 0 && !isJSON(r.Header) {
		return &refusal{http.StatusUnsupportedMediaType, "content type is not JSON", "the content type must be application/json"}
	}
	return nil
}

func loopbackName(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

func loopback(remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && peer.Addr().Unmap().IsLoopback()
}

// forwarded: a proxy on this machine would make everybody's requests look local.
func forwarded(h http.Header) bool {
	for name := range h {
		name = strings.ToLower(name)
		switch name {
		case "forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip":
			return true
		}
		if strings.HasPrefix(name, "x-forwarded") || strings.HasPrefix(name, "x-original-") {
			return true
		}
	}
	return false
}

func (n None) ownHost(r *http.Request) bool {
	port := strconv.Itoa(n.Port)
	if n.Port == 0 {
		local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		if !ok {
			return false
		}
		var err error
		if _, port, err = net.SplitHostPort(local.String()); err != nil {
			return false
		}
	}
	usual := "80"
	if r.TLS != nil {
		usual = "443"
	}
	host := strings.ToLower(r.Host)
	for _, name := range []string{"localhost", "127.0.0.1", "[::1]"} {
		if host == name+":"+port || host == name && port == usual {
			return true
		}
	}
	return false
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

func isJSON(h http.Header) bool {
	kind, _, err := mime.ParseMediaType(h.Get("Content-Type"))
	return err == nil && kind == "application/json"
}
