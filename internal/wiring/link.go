package wiring

import (
	"net/url"

	"tarry/auth"
)

// Link is the address at which the asked person answers a request. It is rendered from the configured public URL, never
// from a Host header, and never goes stale while the request is open. Its query is there so that clients of ADK, which
// append "&redirect_uri=…", make a valid URL.
func Link(public *url.URL, r auth.Request) string {
	u := public.JoinPath("connect")
	u.RawQuery = "request=" + url.QueryEscape(r.ID) + "&state=" + url.QueryEscape(r.Correlator)
	return u.String()
}
