package e2e_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// An application that has users of its own starts runs for them, hands out the link, and claims the login after it has
// checked whose browser came back; nothing is exchanged before (I7).
func TestServicesClaimLoginsOfTheirUsers(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "back at the shop") }))
	t.Cleanup(site.Close)
	p := newPeople(t, single(call("whoami")+text("{{response.whoami.user}}")), `services:
  - {name: shop, issuer: "ISSUER", client_id: shop-backend, apps: [assistant], return_url: "`+site.URL+`/back"}
  - {name: rival, issuer: "ISSUER", subject: rival-backend, apps: [assistant], return_url: "`+site.URL+`/rival"}
`)
	shop, rival := p.program("shop-backend"), p.program("rival-backend")
	alice := p.program(demo.Subject("alice"))
	begin := map[string]string{"task": "Go."}
	for path, want := range map[string]int{
		"/apps/assistant/users/shop:ann/runs": http.StatusAccepted, "/apps/assistant/users/rival:ann/runs": http.StatusForbidden,
		"/apps/assistant/users/" + p.id("alice") + "/runs": http.StatusForbidden, "/apps/assistant/users/me/runs": http.StatusForbidden,
		"/apps/another/users/shop:ann/runs": http.StatusForbidden, "/apps/assistant/users/shop:/runs": http.StatusForbidden,
	} {
		require.Equal(t, want, shop.call("POST", path, begin, nil), path)
	}
	require.Equal(t, http.StatusForbidden, alice.call("POST", "/apps/assistant/users/shop:ann/runs", begin, nil))

	r := shop.startAs("shop:ben", "assistant", begin)
	link := p.waiting(r)
	require.Equal(t, http.StatusForbidden, runHandle{rival, r.app, r.user, r.id}.c.call("GET", r.path("/status"), nil, nil))
	claim := func(c apiClient, user, nonce string) int {
		return c.call("POST", "/apps/assistant/users/"+user+"/logins/claim", map[string]string{"nonce": nonce}, nil)
	}
	// back goes through the login in a browser that has not signed in here, up to the shop.
	back := func(b *demo.Browser, address string) string {
		page := p.visit(b, address)
		require.Equal(t, http.StatusOK, page.Status, page.Text)
		require.True(t, strings.HasPrefix(page.URL.String(), site.URL+"/back?"), page.URL.String())
		require.Contains(t, link, "request="+page.URL.Query().Get("request"))
		return page.URL.Query().Get("nonce")
	}
	ben := demo.NewBrowser()
	answer := p.toTool(ben, link, "", "bob")
	require.NotContains(t, answer, p.identity.URL())

	// Another browser cannot hand the answer on, and no state begins anything.
	p.refusedAt("ben's answer in another browser", demo.NewBrowser(), answer, r)
	answer = p.toTool(ben, link, "", "bob")
	nonce := back(ben, answer)
	require.Equal(t, "waiting_credential", r.status().State)
	require.Zero(t, p.tokenRequests(), "nothing is exchanged before the claim")

	// Ben's link in ann's browser, or ann's answer at ben's: the shop names the user of the session that it sees.
	require.Equal(t, http.StatusForbidden, claim(alice, "me", nonce), "people claim nothing")
	require.Equal(t, http.StatusForbidden, claim(rival, "shop:ben", nonce))
	require.Equal(t, http.StatusNotFound, claim(rival, "rival:ben", nonce), "another service's nonce")
	require.Equal(t, http.StatusNotFound, claim(shop, "shop:ben", nonce+"x"))
	require.Equal(t, http.StatusForbidden, claim(shop, "shop:ann", nonce), "the login was asked of ben")
	require.Equal(t, http.StatusNotFound, claim(shop, "shop:ben", nonce), "one try")
	require.Zero(t, p.tokenRequests())
	require.Equal(t, "waiting_credential", r.status().State)

	// The same link is good for ben, and the newest answer counts.
	answer = p.toTool(ben, link, "", "bob")
	first := back(ben, answer)
	nonce = back(ben, answer)
	require.Equal(t, http.StatusNotFound, claim(shop, "shop:ben", first))
	require.Equal(t, http.StatusOK, claim(shop, "shop:ben", nonce))
	require.Equal(t, "done", p.finished(r).InvocationStatus)
	require.Equal(t, "bob", p.finished(r).Answer)
	require.Equal(t, 1, p.tokenRequests())
	require.Equal(t, http.StatusNotFound, claim(shop, "shop:ben", nonce))

	// The browser of a service's user is nobody anywhere else.
	b := demo.NewBrowser()
	b.StopAt = func(u *url.URL) bool { return u.Path == "/authorize" }
	require.Equal(t, http.StatusUnauthorized, p.visit(ben, p.URL()+r.path("/status")).Status)
	require.Equal(t, "/authorize", p.visit(b, p.URL()+"/connect?request=adk-unknown").URL.Path)
	require.Equal(t, []string{"0"}, p.query(`SELECT COUNT(*) FROM parked_callbacks`))
	p.keptSecret(t, ben)
}
