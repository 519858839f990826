package connect

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"
	"unicode"

	"tarry/server/web"
)

//go:embed pages/*.html
var pageFiles embed.FS

// view is what the templates get.
type view struct {
	status int
	name   string

	Style     template.CSS
	Title     string
	Reference string

	// of a message
	Lines     []string
	Role      string
	Again     string
	AgainText string

	// of a code for another device; Again is where it is entered
	Code     string
	Complete string

	// of the question
	Page     Page
	Action   string
	CSRF     string
	ReturnTo string
	// Change is what account.html asks.
	Change Change
	// Moved: the person confirmed a login elsewhere.
	Moved   bool
	Problem string
}

func parsePages() (*template.Template, error) {
	pages, err := template.New("").Funcs(template.FuncMap{"plain": plain, "long": long, "host": host, "date": date, "iso": iso, "exact": exact}).ParseFS(pageFiles, "pages/*.html")
	if err != nil {
		return nil, fmt.Errorf("connect pages: %w", err)
	}
	return pages, nil
}

func (h *Handler) say(m message, requestID string) view {
	v := view{status: m.status, name: "message.html", Title: m.title, Lines: m.lines, Role: "status"}
	if m.alert {
		v.Role = "alert"
	}
	if m.again != "" && requestID != "" {
		v.Again, v.AgainText = h.Link(requestID), m.again
	}
	return v
}

func (h *Handler) question(page Page, token, back string) view {
	return view{
		status: http.StatusOK, name: "ask.html", Title: "Connect to " + page.ProviderHost,
		Page: page, Action: Path, CSRF: token, ReturnTo: back,
	}
}

// fail answers with the page for err, and logs what is not the caller's doing.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error, requestID string, open bool) {
	v := h.refusal(err, requestID, open)
	if v.status >= http.StatusInternalServerError && r.Context().Err() == nil {
		h.log.ErrorContext(r.Context(), "login page failed", "err", err, "status", v.status, "request_id", web.RequestID(r.Context()))
	} else {
		h.log.InfoContext(r.Context(), "login page refused", "err", err, "status", v.status, "request_id", web.RequestID(r.Context()))
	}
	if v.status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	h.show(w, r, v)
}

func (h *Handler) show(w http.ResponseWriter, r *http.Request, v view) {
	v.Style = web.Stylesheet()
	if v.status >= http.StatusBadRequest {
		v.Reference = web.RequestID(r.Context())
	}
	var body bytes.Buffer
	if err := h.pages.ExecuteTemplate(&body, v.name, v); err != nil {
		h.log.ErrorContext(r.Context(), "page not rendered", "err", err, "request_id", web.RequestID(r.Context()))
		web.Error(w, r, http.StatusInternalServerError, "internal error")
		return
	}
	web.PageHeaders(w.Header(), v.name != "message.html") // their answers redirect
	w.WriteHeader(v.status)
	_, _ = body.WriteTo(w) // the client is gone; nobody is left to tell
}

// maxShown bounds a name on a page, in bytes: one name must not push the others out of sight.
const maxShown = 200

// plain keeps a name from changing how the text around it reads: control and bidirectional format characters are
// replaced, and what is too long is cut.
func plain(s string) string { return clean(s, maxShown) }

// maxLong bounds a text of a server, in bytes.
const maxLong = 4 << 10

func long(s string) string { return clean(s, maxLong) }

// maxHost is more than a name in the DNS with a port can have, in bytes: of a host, the end says whose it is.
const maxHost = 300

func host(s string) string { return clean(s, maxHost) }

func clean(s string, limit int) string {
	s = strings.ToValidUTF8(s, string(unicode.ReplacementChar))
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func date(t time.Time) string { return t.UTC().Format("2 January 2006, 15:04 UTC") }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }
