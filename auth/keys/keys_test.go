package keys_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/keys"
	"tarry/auth/oauth"
	"tarry/auth/vault"
	"tarry/session"
	"tarry/store"
	"tarry/store/storetest"
)

var ann = agent.Owner{App: "planner", User: "ann"}

const server = "https://mcp.example/mcp"

// desk is a service on a real store.
type desk struct {
	*testing.T
	service *keys.Service
	store   *store.Store
	woken   int
	asked   int
}

func setup(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	s := storetest.Open(t)
	v, err := vault.Open(t.Context(), vault.Config{KeysetFile: filepath.Join(dir, "keyset"), Checks: s})
	require.NoError(t, err)
	d := &desk{T: t, store: s}
	d.service = &keys.Service{Store: s, Vault: v, Wake: func() { d.woken++ }, Log: slog.New(slog.DiscardHandler), Secrets: func(_ context.Context, src agent.Source) (auth.Secret, error) {
		value, ok := map[string]string{"TARRY_SECRET_KEY": "own-secret-key", "TARRY_SECRET_USER": "robot", "bad": "two\nlines"}[src.Name]
		if !ok {
			return auth.Secret{}, errors.New("not set")
		}
		return auth.NewSecret(value), nil
	}}
	return d
}

func anyone(agent.Owner) bool { return true }

// next is the broker of logins.
type next struct{ auth.Broker }

func (next) Token(context.Context, auth.Want) (auth.AccessToken, error) {
	return auth.AccessToken{Access: auth.NewSecret("login")}, nil
}

func (next) Challenged(context.Context, auth.Want, auth.Challenge) error { return auth.ErrUnavailable }

func (d *desk) broker(owner agent.Owner, scrub *auth.Scrubber) auth.Broker {
	return d.service.Broker(next{}, owner, oauth.Use{Session: "s", Agent: "root"}, scrub)
}

func apiKey(change ...func(*auth.Want)) auth.Want {
	w := auth.Want{Auth: agent.Auth{Key: "planner", Type: agent.AuthAPIKey, In: agent.InHeader, Name: "X-Key"}, Server: server, Tool: "list", Toolset: "mcp"}
	for _, f := range change {
		f(&w)
	}
	return w
}

func basic() auth.Want {
	return apiKey(func(w *auth.Want) { w.Auth = agent.Auth{Type: agent.AuthHTTP, Scheme: agent.SchemeBasic} })
}

// need is what a want lacks.
func (d *desk) need(b auth.Broker, w auth.Want) auth.Need {
	d.Helper()
	_, err := b.Token(d.Context(), w)
	return needOf(d.T, err)
}

func needOf(t *testing.T, err error) auth.Need {
	t.Helper()
	var required *auth.RequiredError
	require.ErrorAs(t, err, &required)
	return required.Need
}

// ask opens a request in a session of its own.
func (d *desk) ask(n auth.Need) string {
	d.Helper()
	d.asked++
	id := "r" + strings.Repeat("i", d.asked)
	owner := n.Slot.Owner
	require.NoError(d, d.store.Create(d.Context(), session.Session{Owner: owner, ID: id, WorkflowID: "w/" + owner.User + id}))
	r := auth.Request{ID: id, Owner: owner, Session: id, WorkflowID: "w/" + owner.User + id, Invocation: "e", Agent: "root", Need: n, Correlator: "c"}
	asked, err := d.store.Ask(d.Context(), session.Append{Owner: owner, Session: id, Run: "run"}, r, func(auth.Request) (session.NewEvent, error) {
		return session.NewEvent{Kind: session.KindRequest, Event: session.Event{ID: "event-" + id, InvocationID: "e", Author: "root"}}, nil
	})
	require.NoError(d, err)
	require.Equal(d, id, asked.Request.ID)
	return id
}

func value(secret string) auth.KeyValue { return auth.KeyValue{Secret: auth.NewSecret(secret)} }

func TestEnterAndUse(t *testing.T) {
	t.Parallel()
	d := setup(t)
	var scrub auth.Scrubber
	b := d.broker(ann, &scrub)
	n := d.need(b, apiKey())
	require.Equal(t, auth.Slot{Owner: ann, Issuer: "https://mcp.example", Resource: "server:" + server, Client: "key:header:x-key"}, n.Slot)
	require.Equal(t, &auth.Key{In: "header", Name: "X-Key"}, n.Typed)
	id := d.ask(n)
	page, err := d.service.Page(t.Context(), anyone, id)
	require.NoError(t, err)
	require.Equal(t, "mcp.example", page.Host)
	require.False(t, page.Again)

	r, err := d.service.Enter(t.Context(), anyone, id, value("  first-key\n"))
	require.NoError(t, err)
	require.Equal(t, auth.StatusGranted, r.Status)
	require.Equal(t, 1, d.woken)
	_, err = d.service.Enter(t.Context(), anyone, id, value("second-key"))
	require.ErrorIs(t, err, auth.ErrClosed)
	_, err = d.service.Refuse(t.Context(), anyone, id, id)
	require.ErrorIs(t, err, auth.ErrClosed)

	token, err := b.Token(t.Context(), apiKey())
	require.NoError(t, err)
	require.Equal(t, "first-key", token.Access.Reveal())
	require.Equal(t, "[secret] is yours", scrub.Scrub("first-key is yours"))

	// The server refuses it: the person is asked for another, and what is older does not count.
	refused := needOf(t, b.Challenged(t.Context(), apiKey(), auth.Challenge{Status: 401, Used: token.Version}))
	require.Equal(t, token.Version, refused.Refused)
	second := d.ask(refused)
	page, err = d.service.Page(t.Context(), anyone, second)
	require.NoError(t, err)
	require.True(t, page.Again)
	_, err = d.service.Enter(t.Context(), anyone, second, value("second-key"))
	require.NoError(t, err)
	require.NoError(t, b.Challenged(t.Context(), apiKey(), auth.Challenge{Status: 401, Used: token.Version}), "there is a newer one")
	require.ErrorIs(t, b.Challenged(t.Context(), apiKey(), auth.Challenge{Status: 403, Used: token.Version}), oauth.ErrForbidden)
	token, err = b.Token(t.Context(), apiKey(func(w *auth.Want) { w.Refused = token.Version }))
	require.NoError(t, err)
	require.Equal(t, "second-key", token.Access.Reveal())

	login, err := b.Token(t.Context(), auth.Want{Server: server})
	require.NoError(t, err)
	require.Equal(t, "login", login.Access.Reveal())
	require.ErrorIs(t, b.Challenged(t.Context(), auth.Want{Server: server}, auth.Challenge{Status: 401}), auth.ErrUnavailable)
}

// A key is for one person, app, server and manner of sending.
func TestNobodyElsesKey(t *testing.T) {
	t.Parallel()
	d := setup(t)
	_, err := d.service.Enter(t.Context(), anyone, d.ask(d.need(d.broker(ann, nil), apiKey())), value("anns-key"))
	require.NoError(t, err)
	_, err = d.broker(ann, nil).Token(t.Context(), apiKey(func(w *auth.Want) { w.Tool, w.Auth.Key = "other", "another" }))
	require.NoError(t, err, "another agent of the app shares it")
	for name, tc := range map[string]struct {
		owner  agent.Owner
		change func(*auth.Want)
	}{
		"user":    {agent.Owner{App: "planner", User: "bob"}, func(*auth.Want) {}},
		"app":     {agent.Owner{App: "writer", User: "ann"}, func(*auth.Want) {}},
		"domain":  {ann, func(w *auth.Want) { w.Auth.Domain = "own" }},
		"host":    {ann, func(w *auth.Want) { w.Server = "https://evil.example/mcp" }},
		"port":    {ann, func(w *auth.Want) { w.Server = "https://mcp.example:444/mcp" }},
		"scheme":  {ann, func(w *auth.Want) { w.Server = "http://mcp.example/mcp" }},
		"path":    {ann, func(w *auth.Want) { w.Server = "https://mcp.example/other" }},
		"issuer":  {ann, func(w *auth.Want) { w.Server, w.Auth.Issuer = "https://evil.example/mcp", "https://mcp.example" }},
		"header":  {ann, func(w *auth.Want) { w.Auth.Name = "X-Other" }},
		"query":   {ann, func(w *auth.Want) { w.Auth.In = agent.InQuery }},
		"bearer":  {ann, func(w *auth.Want) { w.Auth = agent.Auth{Type: agent.AuthHTTP, Scheme: agent.SchemeBearer} }},
		"as much": {ann, func(w *auth.Want) { w.Server, w.Auth.Resource = "", "https://mcp.example" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := d.broker(tc.owner, nil).Token(t.Context(), apiKey(tc.change))
			needOf(t, err)
		})
	}
	for name, change := range map[string]func(*auth.Want){
		"resource of another server": func(w *auth.Want) { w.Server, w.Auth.Resource = "https://evil.example/mcp", server },
		"no server":                  func(w *auth.Want) { w.Server = "" },
		"no URL":                     func(w *auth.Want) { w.Server, w.Auth.Resource = "", "mcp.example" },
	} {
		_, err := d.broker(ann, nil).Token(t.Context(), apiKey(change))
		require.ErrorIs(t, err, auth.ErrMisconfigured, name)
	}
}

func TestUserNameAndPassword(t *testing.T) {
	t.Parallel()
	d := setup(t)
	var scrub auth.Scrubber
	b := d.broker(ann, &scrub)
	id := d.ask(d.need(b, basic()))
	_, err := d.service.Enter(t.Context(), anyone, id, auth.KeyValue{Username: auth.NewSecret("ann"), Secret: auth.NewSecret(" pass: wörd ")})
	require.NoError(t, err)
	token, err := b.Token(t.Context(), basic())
	require.NoError(t, err)
	require.Equal(t, "ann", token.Username.Reveal())
	require.Equal(t, " pass: wörd ", token.Access.Reveal())
	require.NotContains(t, scrub.Scrub("Basic YW5uOiBwYXNzOiB3w7ZyZCA="), "YW5u", "as the header has it")
	require.Equal(t, "ann", scrub.Scrub("ann"))
}

func TestWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	d := setup(t)
	long := strings.Repeat("k", keys.MaxSecret+1)
	for name, tc := range map[string]struct {
		want  auth.Want
		value auth.KeyValue
		says  string
	}{
		"empty":            {apiKey(), value(" "), "the key is missing"},
		"long":             {apiKey(), value(long), "longer than 8192 bytes"},
		"line break":       {apiKey(), value("a\r\nX-Evil: hunter2"), "characters that cannot be sent"},
		"no ASCII":         {apiKey(), value("hunter2ü"), "characters that cannot be sent"},
		"user for a key":   {apiKey(), auth.KeyValue{Username: auth.NewSecret("u"), Secret: auth.NewSecret("hunter2")}, "no user name"},
		"cookie":           {apiKey(func(w *auth.Want) { w.Auth.In = agent.InCookie }), value("hunter2; admin=1"), "a cookie cannot have"},
		"bearer":           {apiKey(func(w *auth.Want) { w.Auth = agent.Auth{Type: agent.AuthHTTP, Scheme: agent.SchemeBearer} }), value("Bearer hunter2"), "leave out the word Bearer"},
		"no user":          {basic(), value("hunter2"), "the user name is missing"},
		"colon":            {basic(), auth.KeyValue{Username: auth.NewSecret("a:b"), Secret: auth.NewSecret("hunter2")}, "a colon"},
		"long user":        {basic(), auth.KeyValue{Username: auth.NewSecret(long), Secret: auth.NewSecret("hunter2")}, "longer than 256 bytes"},
		"password control": {basic(), auth.KeyValue{Username: auth.NewSecret("a"), Secret: auth.NewSecret("hunter2\x00")}, "characters that cannot be sent"},
	} {
		id := d.ask(d.need(d.broker(agent.Owner{App: "planner", User: name}, nil), tc.want))
		_, err := d.service.Enter(t.Context(), anyone, id, tc.value)
		var wrong *auth.AnswerError
		require.ErrorAs(t, err, &wrong, name)
		require.Contains(t, wrong.Text, tc.says, name)
		require.NotContains(t, err.Error(), "hunter2")
		r, err := d.store.Request(t.Context(), id, anyone)
		require.NoError(t, err)
		require.Equal(t, auth.StatusPending, r.Status, name)
	}
	require.Zero(t, d.woken)
}

func TestTheAppsOwn(t *testing.T) {
	t.Parallel()
	d := setup(t)
	var scrub auth.Scrubber
	b := d.broker(ann, &scrub)
	own := apiKey(func(w *auth.Want) { w.Auth.Secret = "${env:TARRY_SECRET_KEY}" })
	token, err := b.Token(t.Context(), own)
	require.NoError(t, err)
	require.Equal(t, "own-secret-key", token.Access.Reveal())
	require.Equal(t, "[secret]", scrub.Scrub("own-secret-key"))
	err = b.Challenged(t.Context(), own, auth.Challenge{Status: 401})
	require.ErrorIs(t, err, auth.ErrMisconfigured)
	require.ErrorContains(t, err, "mcp.example refuses the app's own key, ${env:TARRY_SECRET_KEY}")

	robot := basic()
	robot.Auth.Secret, robot.Auth.Username = "${env:TARRY_SECRET_KEY}", "${env:TARRY_SECRET_USER}-1"
	token, err = b.Token(t.Context(), robot)
	require.NoError(t, err)
	require.Equal(t, "robot-1", token.Username.Reveal())
	for _, ref := range []agent.SecretRef{"${env:TARRY_SECRET_MISSING}", "${file:bad}"} {
		_, err := b.Token(t.Context(), apiKey(func(w *auth.Want) { w.Auth.Secret = ref }))
		require.ErrorIs(t, err, auth.ErrMisconfigured, ref)
	}
	log, err := d.store.Audit(t.Context(), auth.AuditQuery{App: ann.App, User: ann.User}, anyone, 1000)
	require.NoError(t, err)
	require.NotEmpty(t, log.Rows)
	require.Equal(t, "used", log.Rows[len(log.Rows)-1].Action)
}

// Whoever moves or changes a row gets nothing out of it; the person is asked again.
func TestDamagedKey(t *testing.T) {
	t.Parallel()
	d := setup(t)
	b := d.broker(ann, nil)
	id := d.ask(d.need(b, apiKey()))
	_, err := d.service.Enter(t.Context(), anyone, id, value("anns-key"))
	require.NoError(t, err)
	token, err := b.Token(t.Context(), apiKey())
	require.NoError(t, err)
	found, err := d.store.Grants(t.Context(), oauth.GrantQuery{Owner: ann, Resource: "server:" + server})
	require.NoError(t, err)
	require.Len(t, found, 1)
	for _, sealed := range found[0].Sealed() { // what rotates keys must find it
		if len(sealed.Cipher) > 0 {
			_, err := d.service.Vault.Open(sealed.Cipher, sealed.AD)
			require.NoError(t, err, sealed.Column)
		}
	}
	// The same cipher in the row of another person.
	bob := agent.Owner{App: "planner", User: "bob"}
	n := d.need(d.broker(bob, nil), apiKey())
	moved := found[0]
	moved.ID, moved.Slot = "moved", n.Slot
	require.NoError(t, d.store.EnterKey(t.Context(), d.ask(n), anyone, moved))
	again := d.need(d.broker(bob, nil), apiKey())
	require.Equal(t, token.Version, again.Refused)
	require.Positive(t, again.Refused)
}

func TestPageOfALogin(t *testing.T) {
	t.Parallel()
	d := setup(t)
	n := d.need(d.broker(ann, nil), apiKey())
	n.Typed, n.Type = nil, "mcp"
	id := d.ask(n)
	_, err := d.service.Page(t.Context(), anyone, id)
	require.ErrorIs(t, err, keys.ErrNotKey)
	_, err = d.service.Enter(t.Context(), anyone, id, value("anns-key"))
	require.ErrorIs(t, err, keys.ErrNotKey)
	_, err = d.service.Refuse(t.Context(), anyone, id, "")
	require.ErrorIs(t, err, keys.ErrNotKey)
	_, err = d.service.Enter(t.Context(), func(agent.Owner) bool { return false }, id, value("anns-key"))
	require.ErrorIs(t, err, auth.ErrNoRequest)
}
