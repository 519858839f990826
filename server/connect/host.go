package connect

import (
	"net/http"
	"net/url"

	"tarry/server/web"
)

// movedParam marks a request that was sent to the canonical host once. If it still comes in under another name, a proxy
// rewrites Host, and sending it again would never end.
const movedParam = "moved"

// canonical says whether the request came under the public name. Cookies belong to a host: a flow begun on another one
// would not have them in the callback.
func (h *Handler) canonical(r *http.Request) bool {
	return web.CanonicalHost(h.origin.Scheme, r.Host) == h.origin.Host
}

// move sends the browser to the same page under the public name.
func (h *Handler) move(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	if query.Has(movedParam) {
		h.show(w, r, h.refusal(&MisconfiguredError{Text: "The host name that reaches this server is not the one in its public URL."}, "", false))
		return
	}
	kept := url.Values{movedParam: {"1"}}
	for _, name := range []string{"request", "state", "redirect_uri"} {
		if query.Has(name) {
			kept[name] = query[name]
		}
	}
	target := *h.origin
	target.Path, target.RawQuery = Path, kept.Encode()
	web.PageHeaders(w.Header(), false)
	http.Redirect(w, r, target.String(), http.StatusFound)
}
