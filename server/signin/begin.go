package signin

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"tarry/auth"
	"tarry/server/web"
)

const (
	// attemptLife is how long a person may take at the provider.
	attemptLife = 10 * time.Minute
	// attemptCookie is followed by a part of the state's hash: several tabs may sign in at once.
	attemptCookie = "tarry-signin-"
	// maxAttempts bounds the attempts that a browser keeps; servers and proxies take headers of a few kilobytes only.
	maxAttempts = 3
	// maxTarget bounds where to come back to, in bytes: sealed and encoded it must fit a cookie (RFC 6265 section 6.1).
	maxTarget = 2400
	// movedParam marks a request that was sent to the public name once.
	movedParam = "moved"
)

// attempt is a sign-in that has been begun. It lies sealed in the browser that began it, and nowhere else: nothing is
// written for callers who have not signed in, and what the target holds, such as the code in a callback of a tool's
// login, can be read by this server alone.
type attempt struct {
	State    string    `json:"s"`
	Nonce    string    `json:"n"`
	Verifier string    `json:"v"`
	Target   string    `json:"t"`
	Expires  time.Time `json:"e"`
}

// begin sends the browser to the provider; it comes back to target.
func (p *people) begin(w http.ResponseWriter, r *http.Request, target string) {
	if web.Prefetch(r) {
		// 503 keeps a browser from showing the empty answer later, when the person does open the page.
		web.PageHeaders(w.Header(), false)
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if !p.canonical(r) {
		p.move(w, r)
		return
	}
	if p.limited(w, r) {
		return
	}
	if !localTarget(target) {
		target = Path
	}
	config, err := p.client(r)
	if err != nil {
		p.fail(w, r, http.StatusServiceUnavailable, "The sign-in provider cannot be reached. Try again in a minute.", err)
		return
	}
	if u, err := url.Parse(config.Endpoint.AuthURL); err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !loopbackName(u.Hostname())) {
		p.fail(w, r, http.StatusServiceUnavailable, "The sign-in provider cannot be used. Ask an operator.", errors.New("authorization endpoint is no https address"))
		return
	}
	a := attempt{State: rand.Text() + rand.Text(), Nonce: rand.Text() + rand.Text(), Verifier: oauth2.GenerateVerifier(), Target: target, Expires: p.Now().Add(attemptLife)}
	if err := p.keep(w, r, a); err != nil {
		p.fail(w, r, http.StatusInternalServerError, "Sign-in could not begin.", err)
		return
	}
	web.PageHeaders(w.Header(), false)
	w.Header().Set("Location", config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)))
	w.WriteHeader(http.StatusSeeOther)
}

// client is this server as the provider knows it.
func (p *people) client(r *http.Request) (*oauth2.Config, error) {
	found, err := p.issuer.discover(r.Context())
	if err != nil {
		return nil, err
	}
	endpoint := found.Endpoint()
	// Chosen, not tried: a code that was sent with the wrong method may be spent.
	endpoint.AuthStyle = oauth2.AuthStyleInHeader
	if p.ClientSecret.IsZero() || onlyPost(found.more.AuthMethods) {
		endpoint.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{
		ClientID: p.ClientID, ClientSecret: p.ClientSecret.Reveal(), Endpoint: endpoint,
		RedirectURL: p.public.JoinPath(CallbackPath).String(), Scopes: p.Scopes,
	}, nil
}

// onlyPost says whether the provider wants a secret in the form (OpenID Connect Core section 9; no list means the header).
func onlyPost(methods []string) bool {
	basic, post := len(methods) == 0, false
	for _, m := range methods {
		basic = basic || m == "client_secret_basic"
		post = post || m == "client_secret_post"
	}
	return post && !basic
}

// keep gives the browser the attempt.
func (p *people) keep(w http.ResponseWriter, r *http.Request, a attempt) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err //nolint:wrapcheck // cannot be
	}
	name := attemptName(a.State)
	sealed, err := p.Sealer.Seal(auth.NewSecret(string(body)), name)
	if err != nil {
		return err //nolint:wrapcheck // says what was sealed
	}
	p.forgetAttempts(w, r)
	p.cookies.Set(w, name, auth.NewSecret(base64.RawURLEncoding.EncodeToString(sealed)), attemptLife)
	return nil
}

// forgetAttempts drops all attempts of a browser that has too many: there is no telling which is the oldest.
func (p *people) forgetAttempts(w http.ResponseWriter, r *http.Request) {
	var names []string
	for _, c := range r.Cookies() {
		if strings.HasPrefix(c.Name, p.cookies.Name(attemptCookie)) {
			names = append(names, c.Name)
		}
	}
	if len(names) < maxAttempts {
		return
	}
	for _, name := range names {
		p.cookies.Clear(w, name)
	}
}

func attemptName(state string) string { return attemptCookie + hash(state)[:16] }

// localTarget says whether a browser may be sent to a path and query of ours after sign-in: pages alone, whose list is short.
func localTarget(target string) bool {
	if len(target) > maxTarget || strings.Contains(target, `\`) || !printable(target) {
		return false
	}
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "" || u.Fragment != "" || u.RawPath != "" {
		return false
	}
	for _, page := range []string{"/connect", "/accounts", Path, "/dev-ui"} {
		if u.Path == page || strings.HasPrefix(u.Path, page+"/") {
			return u.Path != CallbackPath && u.JoinPath().Path == u.Path
		}
	}
	digest, ok := strings.CutPrefix(u.Path, "/oauth/callback/")
	return ok && digest != "" && strings.Trim(digest, "0123456789abcdef") == ""
}

// canonical says whether the request came under the public name, to which cookies belong.
func (p *people) canonical(r *http.Request) bool {
	return origin(&url.URL{Scheme: p.public.Scheme, Host: r.Host}) == origin(p.public)
}

// move sends the browser to the same page under the public name. A callback is not moved: it belongs to cookies that another
// name does not have.
func (p *people) move(w http.ResponseWriter, r *http.Request) {
	target := *p.public
	target.Path = r.URL.Path
	query := r.URL.Query()
	if query.Has(movedParam) || query.Has("code") || !localTarget(r.URL.RequestURI()) {
		p.fail(w, r, http.StatusMisdirectedRequest, "The host name that reaches this server is not the one in its public URL.", nil)
		return
	}
	query.Set(movedParam, "1")
	target.RawQuery = query.Encode()
	web.PageHeaders(w.Header(), false)
	http.Redirect(w, r, target.String(), http.StatusFound)
}
