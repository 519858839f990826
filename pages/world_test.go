//go:build pages

package pages_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/server/accounts"
	"tarry/server/connect"
	"tarry/server/signin"
	"tarry/server/web"
)

// person is the name that a proxy says; who it is stands in no row.
const (
	person       = "Ada Lovelace"
	personHeader = "X-Person"
	directory    = "https://people.example"
)

// world serves all pages: what is behind them says what the address asks for.
type world struct{ url, user string }

func serve(t *testing.T) *world {
	t.Helper()
	mux, log := http.NewServeMux(), slog.New(slog.DiscardHandler)
	srv := httptest.NewUnstartedServer(web.Chain(mux, web.RequestIDs(), web.SecurityHeaders()))
	public, err := url.Parse("http://" + srv.Listener.Addr().String())
	require.NoError(t, err)
	everybody, err := signin.ParseAllow([]string{"*"})
	require.NoError(t, err)
	gate, err := signin.New(signin.Config{
		PublicURL: public, Log: log,
		Proxy: &signin.Proxy{Header: personHeader, Issuer: directory, Peers: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		OIDC: &signin.OIDC{
			Issuer: "http://127.0.0.1:1", ClientID: "tarry", Scopes: []string{"openid"}, Allow: everybody, Idle: time.Hour, Lifetime: time.Hour,
			Sessions: noSessions{}, Sealer: noSealer{}, HTTP: http.DefaultClient,
		},
	})
	require.NoError(t, err)
	gate.Mount(mux)
	w := &world{url: public.String(), user: signin.UserID(directory, person)}
	h, err := connect.New(connect.Config{PublicURL: w.url, Logins: logins{user: w.user}, Log: log})
	require.NoError(t, err)
	h.Mount(mux, gate.Require(signin.Forms))
	list := &accounts.Handler{Connections: connections{user: w.user}, Logger: log}
	pages, err := accounts.NewPages(list, public, auth.Secret{})
	require.NoError(t, err)
	pages.Mount(mux, gate.Require(signin.Forms))
	mux.HandleFunc("GET /refused", func(rw http.ResponseWriter, r *http.Request) {
		web.Error(rw, r, http.StatusForbidden, "requests of other sites are not allowed")
	})
	srv.Start()
	t.Cleanup(srv.Close)
	return w
}

// noSessions has none, and is asked for nothing else.
type noSessions struct{ signin.Sessions }

func (noSessions) PersonSession(context.Context, string, time.Duration) (auth.PersonSession, error) {
	return auth.PersonSession{}, auth.ErrNoSession
}

type noSealer struct{}

func (noSealer) Seal(auth.Secret, string) ([]byte, error) { return nil, errors.New("sealed nothing") }

func (noSealer) Open([]byte, string) (auth.Secret, error) {
	return auth.Secret{}, errors.New("opened nothing")
}

// logins knows a request of each kind by its id, and ends as the state or the request says.
type logins struct{ user string }

func (l logins) Page(_ context.Context, access auth.Access, id string) (connect.Page, error) {
	p, ok := requests()[id]
	if !ok || !access(agent.Owner{App: "planner", User: l.user}) {
		return connect.Page{}, connect.ErrUnknown
	}
	p.RequestID, p.App, p.User, p.Status, p.Correlator = id, "planner", l.user, auth.StatusPending, "c"
	return p, nil
}

func (l logins) Begin(context.Context, auth.Access, string, string) (connect.Started, error) {
	return connect.Started{}, connect.ErrProvider
}

func (l logins) Complete(_ context.Context, _ auth.Access, c connect.Callback) (connect.Result, error) {
	o := outcomes()[c.State.Reveal()]
	o.result.RequestID, o.result.App = "ask", "planner"
	if o.err == nil && o.result.Outcome == "" {
		return connect.Result{}, connect.ErrUnknown
	}
	return o.result, o.err
}

func (l logins) Account(context.Context, auth.Access, connect.Choice) (connect.Result, error) {
	return connect.Result{RequestID: "ask", App: "planner", Outcome: auth.StatusPending}, nil
}

func (l logins) Park(context.Context, signin.Principal, connect.Callback) (string, error) {
	return "", connect.ErrUnknown
}

// Answer takes what is filled in if it is long enough.
func (l logins) Answer(_ context.Context, _ auth.Access, id string, a connect.Answer) (connect.Result, error) {
	r := connect.Result{RequestID: id, App: "planner", ProviderHost: "api.weather.example", Outcome: auth.StatusGranted}
	r.Key, r.Confirmation = id == "key" || id == "basic", strings.HasPrefix(id, "confirm")
	r.Input = !r.Key && !r.Confirmation
	if a.Decline {
		r.Outcome = auth.StatusDenied
		return r, nil
	}
	for _, name := range []string{"field-0-0", connect.KeyControl, connect.AnswerControl, connect.PayloadControl} {
		if values := a.Values(name); len(values) > 0 && len(values[0]) < 3 {
			return connect.Result{}, &connect.FormError{Text: "Name: must have at least 3 characters.", Control: strings.TrimPrefix(name, connect.KeyControl)}
		}
	}
	return r, nil
}

// connections has two accounts, one of them with names as long as they come.
type connections struct{ user string }

func (c connections) Accounts(_ context.Context, q accounts.Query, _ auth.Access) (accounts.Page, error) {
	if q.User != c.user || q.After == "none" {
		return accounts.Page{}, nil
	}
	at := time.Date(2026, 11, 3, 9, 5, 0, 0, time.UTC)
	return accounts.Page{Next: "more", Accounts: []accounts.Account{
		{ID: "a1", App: "planner", User: c.user, Provider: "github.com", Server: "api.githubcopilot.com", Account: "ada@example.com", Scopes: []string{"repo", "read:user"}, Connected: at, LastUsed: at.Add(time.Hour), Renews: true},
		{ID: "a2", App: "planner", User: c.user, Provider: longHost, Server: longHost, Account: longName, Scopes: []string{longScope}, Connected: at},
	}}, nil
}

func (c connections) Disconnect(_ context.Context, _ agent.Owner, id string, tell bool) (accounts.Outcome, error) {
	return accounts.Outcome{ID: id, Revoked: tell}, nil
}

func sorted[T any](m map[string]T) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
