package demo

import (
	"net/http"
	"net/url"
	"strings"
)

// Values of Sec-Fetch-Site, from the best to the worst.
const (
	siteNone       = "none"
	siteSameOrigin = "same-origin"
	siteSameSite   = "same-site"
	siteCross      = "cross-site"
)

// setOriginHeaders sends what browsers send with a navigation: Fetch Metadata section 2, Referrer Policy section 3, and
// Fetch section 3.2 ("append a request Origin header").
func (n *navigation) setOriginHeaders(h http.Header) {
	h.Set("Sec-Fetch-Mode", "navigate")
	h.Set("Sec-Fetch-Dest", "document")
	h.Set("Sec-Fetch-User", "?1")
	h.Set("Sec-Fetch-Site", n.relation())
	if n.from == nil {
		return
	}
	policy := n.from.referrerPolicy()
	if ref := referrer(policy, n.from.URL, n.url); ref != "" {
		h.Set("Referer", ref)
	}
	if n.method == http.MethodGet || n.method == http.MethodHead {
		return
	}
	// A page with no-referrer submits its forms with "Origin: null", to its own site too.
	own := origin(n.from.URL)
	if policy == "no-referrer" || (policy == "same-origin" && own != origin(n.url)) {
		own = "null"
	}
	h.Set("Origin", own)
}

// relation keeps the worst of the chain: a redirect through another site makes even the way home cross-site.
func (n *navigation) relation() string {
	if n.from == nil {
		n.site = siteNone
		return n.site
	}
	now := siteCross
	switch {
	case origin(n.from.URL) == origin(n.url):
		now = siteSameOrigin
	case n.from.URL.Scheme == n.url.Scheme && strings.EqualFold(n.from.URL.Hostname(), n.url.Hostname()):
		now = siteSameSite // the ports differ; for loopback addresses the host is the site
	}
	switch {
	case n.site == siteCross || now == siteCross:
		n.site = siteCross
	case n.site == siteSameSite || now == siteSameSite:
		n.site = siteSameSite
	default:
		n.site = siteSameOrigin
	}
	return n.site
}

// referrer implements the policies in use; any other is the default, strict-origin-when-cross-origin.
func referrer(policy string, from, to *url.URL) string {
	same := origin(from) == origin(to)
	full := *from
	full.User, full.Fragment, full.RawFragment = nil, "", ""
	switch {
	case policy == "no-referrer", policy == "same-origin" && !same, from.Scheme == "https" && to.Scheme == "http":
		return ""
	case policy == "origin", policy == "strict-origin":
		return origin(from) + "/"
	case same:
		return full.String()
	}
	return origin(from) + "/"
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// referrerPolicy is the last policy in the header that is not empty.
func (p *Page) referrerPolicy() string {
	policies := strings.Split(p.Header.Get("Referrer-Policy"), ",")
	for i := len(policies) - 1; i >= 0; i-- {
		if v := strings.ToLower(strings.TrimSpace(policies[i])); v != "" {
			return v
		}
	}
	return ""
}
