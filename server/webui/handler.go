package webui

import (
	"bytes"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"tarry/server/signin"
	"tarry/server/web"
)

// Path is where the UI looks for itself: it sends people who log in back to this path of its own origin.
const (
	Path   = folder + "/"
	folder = "/dev-ui"
)

const runtimeConfig = "assets/config/runtime-config.json"

// usualUser is the user id that the UI starts with.
const usualUser = "user"

// Handler serves a build. Safe for concurrent use.
type Handler struct {
	build  *Build
	origin *url.URL
}

// New makes a handler for a server that browsers reach at public.
func New(build *Build, public *url.URL) *Handler {
	return &Handler{build, &url.URL{Scheme: public.Scheme, Host: web.CanonicalHost(public.Scheme, public.Host)}}
}

// Address is the UI's own, as browsers write it.
func (h *Handler) Address() string { return h.origin.String() + Path }

// Mount adds the routes to mux: the page behind signIn, which sends browsers that have not signed in to do so, and its files
// behind known, which refuses them.
func (h *Handler) Mount(mux *http.ServeMux, signIn, known web.Middleware) {
	mux.HandleFunc("GET /{$}", h.toPage)
	mux.HandleFunc("GET "+folder, h.toPage)
	mux.Handle("GET "+Path+"{$}", signIn(http.HandlerFunc(h.page)))
	mux.Handle("GET "+Path+"{path...}", known(http.HandlerFunc(h.file)))
}

// toPage sends a browser to the page, with the query that it came with.
func (h *Handler) toPage(w http.ResponseWriter, r *http.Request) {
	redirect(w, &url.URL{Path: Path, RawQuery: r.URL.RawQuery})
}

// page serves the page. Somebody who has signed in is sent to it once more with the user id that stands for them: the UI
// starts with one that is not theirs. A popup that brings a login's answer is left as it is.
func (h *Handler) page(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	to := url.URL{Path: Path}
	if own := signin.FromContext(r.Context()).User; query.Get("userId") == "" && !query.Has("code") && own != "" && own != usualUser {
		query.Set("userId", signin.Me)
		to.RawQuery = query.Encode()
	}
	// Under another name of this machine the UI would name an address to return to that is not the server's own.
	if web.CanonicalHost(h.origin.Scheme, r.Host) != h.origin.Host && !query.Has(movedParam) {
		query.Set(movedParam, "1")
		to.Scheme, to.Host, to.RawQuery = h.origin.Scheme, h.origin.Host, query.Encode()
	}
	if to.RawQuery != "" {
		redirect(w, &to)
		return
	}
	h.serve(w, r, index)
}

// movedParam marks a request that was sent to the public name once: where a proxy rewrites Host, sending it again would
// never end.
const movedParam = "moved"

func redirect(w http.ResponseWriter, to *url.URL) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusFound)
}

// file serves a file, or for an address inside the UI its page.
func (h *Handler) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("path")
	switch {
	case name == runtimeConfig:
		h.headers(w, "no-store")
		web.JSON(w, http.StatusOK, map[string]any{"backendUrl": "", "telemetry": false})
	case name == index:
		h.toPage(w, r)
	case h.build.has(name):
		h.serve(w, r, name)
	case inside(name):
		// The page finds its files beside its own address, so it cannot be served under a longer one.
		h.toPage(w, r)
	default:
		h.headers(w, "no-store")
		web.Error(w, r, http.StatusNotFound, "the web UI has no such file")
	}
}

// inside says whether name may be one that the UI made up for itself: no file's.
func inside(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if hidden(part) || strings.ContainsAny(part, "\\\x00") {
			return false
		}
	}
	return path.Ext(name) == ""
}

func (b *Build) has(name string) bool {
	_, ok := b.files[name]
	return ok
}

// hashed are names that change with what is in the file.
var hashed = regexp.MustCompile(`-[A-Z0-9]{8}\.(js|css)$`)

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, name string) {
	f := h.build.files[name]
	switch {
	case name == index: // who may see it, and under which user id, changes
		h.headers(w, "no-store")
	case hashed.MatchString(name):
		h.headers(w, "private, max-age=31536000, immutable")
	default:
		h.headers(w, "private, no-cache")
	}
	w.Header().Set("Content-Type", contentType(name))
	w.Header().Set("ETag", f.tag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(f.body))
}

// headers are those of all that comes from the folder. There is no Cross-Origin-Opener-Policy, which would cut a popup off from
// the window that waits for it.
func (h *Handler) headers(w http.ResponseWriter, cache string) {
	w.Header().Set("Content-Security-Policy", h.build.policy)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Frame-Options", "DENY")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Cache-Control", cache)
}

// contentType does not ask the machine, whose tables differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".ico":
		return "image/x-icon"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".ttf":
		return "font/ttf"
	case ".wasm":
		return "application/wasm"
	case ".md", ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
