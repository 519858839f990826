package connect

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tarry/auth"
	"tarry/server/web"
)

// Device is a code that the person takes to another device (RFC 8628 section 3.3).
type Device struct {
	// UserCode is typed in at URI; Complete has it in the address and may be empty.
	UserCode auth.Secret
	URI      string
	Complete auth.Secret
	Expires  time.Time
}

// deviceRefresh is how often the page with a code looks whether it was answered. Each time the page begins anew for whoever
// reads it by keyboard or has it read out, so it can be told to keep still (WCAG 2.2.1, F41).
const deviceRefresh = 10 * time.Second

// stillParam marks the page that keeps still.
const stillParam = "still"

// waiting shows the code to the person who is asked, until the request has ended. The page asks for itself again by a header:
// there is no script.
func (h *Handler) waiting(w http.ResponseWriter, r *http.Request, page Page, back string) {
	link := h.Link(page.RequestID)
	if back != "" {
		link += "&" + url.Values{"redirect_uri": {back}}.Encode()
	}
	v := view{
		status: http.StatusOK, file: "device.html", Frame: web.Frame{Title: "Enter a code at " + page.ProviderHost}, Page: page,
		Again: page.Device.URI, Code: page.Device.UserCode.Reveal(), Complete: page.Device.Complete.Reveal(),
		Still: r.URL.Query().Get(stillParam) != "", Look: link,
	}
	if !v.Still {
		v.Look += "&" + stillParam + "=1"
		w.Header().Set("Refresh", fmt.Sprintf("%d; url=%s", int(deviceRefresh.Seconds()), link))
	}
	h.show(w, r, v)
}
