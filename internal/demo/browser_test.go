package demo_test

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

func TestPagesAreReadable(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	b := demo.NewBrowser()
	login, err := b.Open(t.Context(), a.authorizeURL(nil))
	require.NoError(t, err)
	require.Equal(t, "Sign in · Ledger ID", login.Title)
	require.Contains(t, login.Text, "Planner asks for access")
	require.Equal(t, "no-store", login.Header.Get("Cache-Control"))
	require.NotContains(t, login.Body, "state-", "the state is the client's and stays in memory")
	require.NotContains(t, strings.ToLower(login.Body), "<script")
	style, err := b.Follow(t.Context(), login, "/style.css")
	require.NoError(t, err)
	require.Contains(t, style.Header.Get("Content-Type"), "text/css")

	wrong, err := b.SignIn(t.Context(), login, "alice", "guess")
	require.NoError(t, err)
	require.Equal(t, http.StatusUnauthorized, wrong.Status)
	require.Contains(t, wrong.Text, "wrong")

	consent, err := b.SignIn(t.Context(), wrong, "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, "Allow access? · Ledger ID", consent.Title)
	for _, want := range []string{"Planner wants to act for you, Alice", "Read tickets", resource, a.callback.Listener.Addr().String()} {
		require.Contains(t, consent.Text, want)
	}
	back, err := b.Press(t.Context(), consent, "allow")
	require.NoError(t, err)
	require.Equal(t, "Back", back.Title)
	require.Equal(t, "You can close this page.", back.Text)
	require.Len(t, back.Hops, 2)

	// The decision is final.
	again, err := b.Press(t.Context(), consent, "allow")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, again.Status)
}

func TestSecondLoginNeedsNoPassword(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	b := demo.NewBrowser()
	first := a.login(b, "alice")
	second := a.login(b, "alice")
	require.NotEqual(t, first.Get("code"), second.Get("code"))
	require.Equal(t, 1, p.Counts().Logins)
}

func TestTwoTabs(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	b := demo.NewBrowser()
	one, err := b.Open(t.Context(), a.authorizeURL(nil))
	require.NoError(t, err)
	_, err = b.Open(t.Context(), a.authorizeURL(map[string]string{"state": "other"}))
	require.NoError(t, err)
	consent, err := b.SignIn(t.Context(), one, "alice", "alice-password")
	require.NoError(t, err)
	back, err := b.Press(t.Context(), consent, "allow")
	require.NoError(t, err)
	require.Equal(t, "state-"+a.id, back.URL.Query().Get("state"))
}

func TestFormsAreBoundToTheBrowser(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	b := demo.NewBrowser()
	login, err := b.Open(t.Context(), a.authorizeURL(nil))
	require.NoError(t, err)

	other, err := demo.NewBrowser().SignIn(t.Context(), login, "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, other.Status)

	login.Forms[0].Fields.Set("csrf_token", "x")
	forged, err := b.SignIn(t.Context(), login, "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, http.StatusForbidden, forged.Status)
	require.Zero(t, p.Counts().Logins)
}

// TestLoginThroughAConnectPage has the application's page in front: one form, a hidden CSRF field, a button.
func TestLoginThroughAConnectPage(t *testing.T) {
	t.Parallel()
	for name, buttons := range map[string]string{
		"one button":         `<button>Connect</button>`,
		"with cancel":        `<button name=action value=cancel>Cancel</button> <button name=action value=go>Continue</button>`,
		"with allow wording": `<button name=action value=deny>Deny</button> <button name=action value=go>Allow</button>`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t, demo.ProviderConfig{})
			a := newApp(t, p, demo.AuthNone)
			var got http.Header
			var site string
			mux := http.NewServeMux()
			mux.HandleFunc("GET /connect", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.Header().Set("Referrer-Policy", "no-referrer")
				_, _ = io.WriteString(w, `<form method=post><input type=hidden name=csrf value=c>`+buttons+`</form>`)
			})
			mux.HandleFunc("POST /connect", func(w http.ResponseWriter, r *http.Request) {
				got = r.Header.Clone()
				if r.FormValue("csrf") != "c" || (r.FormValue("action") != "" && r.FormValue("action") != "go") {
					http.Error(w, "bad form", http.StatusForbidden)
					return
				}
				http.Redirect(w, r, a.authorizeURL(nil), http.StatusSeeOther)
			})
			mux.HandleFunc("GET /cb", func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				w.WriteHeader(http.StatusOK)
				// A form that must not be pressed.
				_, _ = io.WriteString(w, `<title>Done</title><form method=post action=/disconnect><button>Disconnect</button></form>`)
				site = r.Header.Get("Sec-Fetch-Site")
			})
			srv := httptest.NewServer(mux)
			t.Cleanup(srv.Close)
			client, _ := p.Client(a.id)
			a.callback.URL = srv.URL
			client.RedirectURIs = []string{a.redirect()}
			p.AddClient(client)

			page, err := demo.NewBrowser().Login(t.Context(), srv.URL+"/connect", "bob", "bob-password")
			require.NoError(t, err)
			require.Equal(t, "Done", page.Title)
			require.Equal(t, "same-site", site)
			require.NotEmpty(t, page.URL.Query().Get("code"))
			require.Equal(t, "null", got.Get("Origin"), "browsers send no origin from a no-referrer page")
			require.Equal(t, "same-origin", got.Get("Sec-Fetch-Site"))
			require.Empty(t, got.Get("Referer"))

			page, err = demo.NewBrowser().Login(t.Context(), srv.URL+"/connect", "bob", "guess")
			require.NoError(t, err)
			require.Equal(t, http.StatusUnauthorized, page.Status)
		})
	}
}

func TestStopAt(t *testing.T) {
	t.Parallel()
	p := newProvider(t, demo.ProviderConfig{})
	a := newApp(t, p, demo.AuthNone)
	b := demo.NewBrowser()
	b.StopAt = func(u *url.URL) bool { return strings.HasPrefix(u.String(), a.redirect()) }
	page, err := b.Login(t.Context(), a.authorizeURL(nil), "alice", "alice-password")
	require.NoError(t, err)
	require.Equal(t, http.StatusSeeOther, page.Status)
	require.NotEmpty(t, page.URL.Query().Get("code"))
}

func TestFormsAreReadAsBrowsersDo(t *testing.T) {
	t.Parallel()
	var got url.Values
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			_ = r.ParseForm()
			got = r.PostForm
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<title> A  page </title><style>hidden</style><p>seen</p><script>hidden</script>
<form method="POST" action="/a?b=c"><input name=a value=1><input name=off value=x disabled>
<input type=checkbox name=c checked><input type=checkbox name=d><input type=radio name=r value=1><input type=radio name=r value=2 checked>
<select name=s><option value=1>one<option selected>two</select><textarea name=t>text</textarea>
<input type=submit name=go value=1><button type=button name=no>no</button><button name=go value=2 formaction="/b">Two</button></form>`)
	}))
	t.Cleanup(srv.Close)
	b := demo.NewBrowser()
	page, err := b.Open(t.Context(), srv.URL)
	require.NoError(t, err)
	require.Equal(t, "A page", page.Title)
	require.NotContains(t, page.Text, "hidden")
	form := page.Forms[0]
	require.Len(t, form.Buttons, 2)
	next, err := b.Submit(t.Context(), page, form, map[string]string{"a": "2"}, form.Button("two"))
	require.NoError(t, err)
	require.Equal(t, "/b", next.URL.Path)
	got.Set("t", strings.TrimSpace(got.Get("t")))
	require.Equal(t, url.Values{"a": {"2"}, "c": {"on"}, "r": {"2"}, "s": {"two"}, "t": {"text"}, "go": {"2"}}, got)
}
