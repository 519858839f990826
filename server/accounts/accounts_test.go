package accounts_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/server/accounts"
	"tarry/store"
)

// connections is the store, without a provider to tell anything.
type connections struct {
	*store.Store
	reason string
}

func (c *connections) Accounts(ctx context.Context, q accounts.Query, access auth.Access) (out accounts.Page, err error) {
	page, err := c.Store.Accounts(ctx, oauth.AccountQuery{App: q.App, User: q.User, After: q.After, Limit: q.Limit}, access)
	out.Accounts = []accounts.Account{}
	for _, g := range page.Grants {
		out.Accounts = append(out.Accounts, accounts.Account{Scopes: []string{}, ID: g.ID, App: g.Slot.Owner.App, User: g.Slot.Owner.User, Provider: g.Slot.Issuer, Account: g.Account.Label, Connected: g.Updated})
	}
	out.Next = page.Next
	return out, err
}

func (c *connections) Disconnect(ctx context.Context, owner agent.Owner, id string, tell bool) (accounts.Outcome, error) {
	_, err := c.Remove(ctx, owner, id)
	if errors.Is(err, oauth.ErrNotFound) {
		err = accounts.ErrUnknown
	}
	return accounts.Outcome{ID: id, Revoked: tell && c.reason == "", Reason: c.reason}, err
}

// connect stores what a login gives, and returns its id.
func (w *world) connect(owner agent.Owner, issuer, label string) string {
	w.t.Helper()
	g, err := w.store.Keep(w.t.Context(), oauth.Grant{
		Slot: auth.Slot{Owner: owner, Issuer: issuer, Client: auth.ClientDynamic}, Access: []byte("sealed"), Account: oauth.Account{Label: label},
	})
	require.NoError(w.t, err)
	return g.ID
}

func (w *world) listed(caller, app, user string) (ids []string) {
	w.t.Helper()
	for after := ""; ; {
		status, body := w.do(caller, http.MethodGet, "/apps/"+app+"/users/"+user+"/accounts?limit=2&after="+after)
		require.Equal(w.t, http.StatusOK, status, body)
		var page accounts.Page
		require.NoError(w.t, json.Unmarshal([]byte(body), &page))
		require.LessOrEqual(w.t, len(page.Accounts), 2)
		for _, a := range page.Accounts {
			require.Equal(w.t, app+" "+user, a.App+" "+a.User)
			ids = append(ids, a.ID)
		}
		if after = page.Next; after == "" {
			return ids
		}
	}
}

func TestAccountsAreOnesOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := map[agent.Owner][]string{}
	for _, owner := range []agent.Owner{ann, bob, annElsewhere} {
		for i := range 5 {
			ids[owner] = append(ids[owner], w.connect(owner, fmt.Sprintf("https://id%d.example", i), "at-"+owner.User))
		}
	}
	require.Equal(t, ids[ann], w.listed("ann", "planner", "ann"))
	require.Equal(t, ids[annElsewhere], w.listed("ann", "writer", "ann"))
	require.Equal(t, ids[bob], w.listed("planner", "planner", "bob"))
	require.Equal(t, ids[bob], w.listed("operator", "planner", "bob"))

	const of = "/apps/planner/users/"
	for _, c := range []struct {
		caller, method, path string
		status               int
	}{
		{"ann", "GET", of + "bob/accounts", 403},
		{"planner", "GET", "/apps/writer/users/ann/accounts", 403},
		{"nobody", "GET", of + "ann/accounts", 403},
		{"ann", "DELETE", of + "bob/accounts/" + ids[bob][0], 403},
		{"ann", "POST", of + "bob/accounts/" + ids[bob][0] + "/revoke", 403},
		{"ann", "DELETE", of + "ann/accounts/" + ids[bob][0], 404},
		{"ann", "POST", of + "ann/accounts/" + ids[bob][0] + "/revoke", 404},
		{"ann", "DELETE", of + "ann/accounts/" + ids[annElsewhere][0], 404},
		{"planner", "DELETE", of + "ann/accounts/" + ids[annElsewhere][0], 404},
		{"ann", "DELETE", of + "ann/accounts/nowhere", 404},
		{"ann", "GET", of + "ann/accounts?after=x", 400},
		{"ann", "GET", of + "ann/accounts?limit=x", 400},
	} {
		status, body := w.do(c.caller, c.method, c.path)
		require.Equal(t, c.status, status, "%s %s %s: %s", c.caller, c.method, c.path, body)
		require.NotContains(t, body, "at-bob")
	}
	for owner, all := range ids {
		require.Equal(t, all, w.listed("operator", owner.App, owner.User), "something is gone")
	}

	status, body := w.do("ann", "POST", of+"ann/accounts/"+ids[ann][0]+"/revoke")
	require.Equal(t, 200, status)
	require.JSONEq(t, `{"id":"`+ids[ann][0]+`","revoked":true}`, body)
	w.connections.reason = "unavailable"
	_, body = w.do("ann", "POST", of+"ann/accounts/"+ids[ann][1]+"/revoke")
	require.JSONEq(t, `{"id":"`+ids[ann][1]+`","revoked":false,"reason":"unavailable"}`, body)
	status, _ = w.do("ann", "DELETE", of+"ann/accounts/"+ids[ann][2])
	require.Equal(t, 200, status)
	require.Equal(t, ids[ann][3:], w.listed("ann", "planner", "ann"))

	// Who did it is in the log, as the sign-in says.
	_, body = w.do("ann", "GET", "/audit?user=ann&action=deleted")
	require.Equal(t, 3, strings.Count(body, `"actor":"https://id.example ann"`), body)
}

// browser is one caller with cookies.
type browser struct {
	*world
	caller string
	client *http.Client
}

func (w *world) browser(caller string) *browser {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(w.t, err)
	return &browser{w, caller, &http.Client{Jar: jar}}
}

func (b *browser) send(method, path string, form url.Values, headers ...string) (int, http.Header, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, b.url+path, strings.NewReader(form.Encode()))
	require.NoError(b.t, err)
	req.Header.Set("Test-Caller", b.caller)
	req.Header.Set("Accept", "text/html")
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.client.Do(req)
	require.NoError(b.t, err)
	return resp.StatusCode, resp.Header, read(b.t, resp)
}

// forms are those of a page, by account.
func forms(page string) map[string]url.Values {
	out := map[string]url.Values{}
	for _, form := range regexp.MustCompile(`(?s)<form.*?</form>`).FindAllString(page, -1) {
		values := url.Values{}
		for _, m := range regexp.MustCompile(`name="([a-z]+)" value="([^"]*)"`).FindAllStringSubmatch(form, -1) {
			if m[1] != "action" {
				values.Set(m[1], m[2])
			}
		}
		out[values.Get("account")] = values
	}
	return out
}

func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var ids []string
	for i := range 30 {
		ids = append(ids, w.connect(ann, fmt.Sprintf("https://id%02d.example", i), "<script>alert(1)</script>\u202e"))
	}
	ofBob := w.connect(bob, "https://id.example", "at-bob")
	b := w.browser("ann")
	status, header, page := b.send("GET", "/accounts?user=ann", nil)
	require.Equal(t, 200, status, page)
	require.Contains(t, header.Get("Content-Security-Policy"), "default-src 'none'")
	require.Equal(t, "no-store", header.Get("Cache-Control"))
	require.NotContains(t, page, "<script")
	require.NotContains(t, page, "\u202e")
	require.NotContains(t, page, "bob")
	first := forms(page)
	require.Len(t, first, 20)
	next := regexp.MustCompile(`<a href="([^"]+)">Next page`).FindStringSubmatch(page)
	require.NotEmpty(t, next)
	_, _, second := b.send("GET", strings.ReplaceAll(next[1], "&amp;", "&"), nil)
	require.Len(t, forms(second), 10)
	require.NotContains(t, second, "Next page")
	require.Contains(t, second, "First page")

	form := func(id string, change ...string) url.Values {
		out := url.Values{"action": {"revoke"}}
		for name, values := range first[id] {
			out[name] = values
		}
		for i := 0; i < len(change); i += 2 {
			out.Set(change[i], change[i+1])
		}
		return out
	}
	post := func(b *browser, form url.Values, headers ...string) func() (int, http.Header, string) {
		return func() (int, http.Header, string) { return b.send("POST", "/accounts", form, headers...) }
	}
	for name, try := range map[string]func() (int, http.Header, string){
		"no token":            post(b, form(ids[0], "csrf", "")),
		"bob by name":         post(b, form(ids[0], "account", ofBob, "user", "bob")),
		"another browser":     post(w.browser("ann"), form(ids[0])),
		"another site":        post(b, form(ids[0]), "Origin", "https://evil.example"),
		"a frame":             post(b, form(ids[0]), "Origin", "null", "Sec-Fetch-Site", "cross-site"),
		"as JSON":             post(b, form(ids[0]), "Content-Type", "application/json"),
		"page of bob":         func() (int, http.Header, string) { return b.send("GET", "/accounts?user=bob", nil) },
		"another's session":   post(&browser{w, "bob", b.client}, form(ids[0])),
		"no principal at all": post(&browser{w, "nobody", b.client}, form(ids[0])),
	} {
		status, _, body := try()
		require.Equal(t, http.StatusForbidden, status, name)
		require.NotContains(t, body, "at-bob", name)
	}
	_, _, page = b.send("POST", "/accounts", form(ids[0], "account", ofBob))
	require.Contains(t, page, "not connected any more")
	require.Len(t, w.listed("operator", "planner", "ann"), 30)
	require.Len(t, w.listed("operator", "planner", "bob"), 1)

	for _, c := range []struct{ id, action, reason, says string }{
		{ids[0], "revoke", "", "taken the access back"},
		{ids[0], "revoke", "", "not connected any more"},
		{ids[1], "revoke", "unavailable", "could not be told"},
		{ids[2], "delete", "", "was not told"},
	} {
		w.connections.reason = c.reason
		status, _, page := b.send("POST", "/accounts", form(c.id, "action", c.action))
		require.Equal(t, 200, status)
		require.Contains(t, page, c.says)
		require.NotContains(t, forms(page), c.id)
	}
	require.Len(t, w.listed("operator", "planner", "ann"), 27)
	_, _, page = b.send("GET", "/accounts?user=ann&done=%3Cscript%3E", nil)
	require.NotContains(t, page, "<script")
	status, _, page = w.browser("operator").send("GET", "/accounts", nil)
	require.Equal(t, 200, status)
	require.Contains(t, page, "Nothing is connected")
}
