package demo

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

//go:embed pages/*.html
var pageFiles embed.FS

//go:embed pages/style.css
var stylesheet []byte

func parsePages() (*template.Template, error) {
	t, err := template.ParseFS(pageFiles, "pages/*.html")
	if err != nil {
		return nil, fmt.Errorf("parse pages: %w", err)
	}
	return t, nil
}

// page is what the templates get.
type page struct {
	Provider, Prefix, Title string
	Request, CSRF           string
	// Message is an error for the person.
	Message string
	// Client, ReturnTo, Resource, Scopes and User are for the consent page; Name is what was typed at sign-in.
	Client, ReturnTo, Resource, User, Name string
	Scopes                                 []scopeLine
}

type scopeLine struct{ Name, Text string }

func scopeLines(scopes []string) []scopeLine {
	texts := map[string]string{
		ScopeRead:    "Read tickets",
		ScopeWrite:   "Write plans and comments",
		ScopePublish: "Publish release plans",
		ScopeOffline: "Keep access while you are away",
	}
	lines := make([]scopeLine, 0, len(scopes))
	for _, s := range scopes {
		text := texts[s]
		if text == "" {
			text = s
		}
		lines = append(lines, scopeLine{Name: s, Text: text})
	}
	return lines
}

func (p *Provider) render(w http.ResponseWriter, status int, name string, data page) {
	data.Provider, data.Prefix = p.cfg.Name, p.prefix()
	var buf bytes.Buffer
	if err := p.pages.ExecuteTemplate(&buf, name, data); err != nil {
		http.Error(w, "page is broken", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	// same-origin and not no-referrer: with the latter browsers send "Origin: null" when a form is submitted.
	h.Set("Referrer-Policy", "same-origin")
	// No form-action: browsers apply it to the redirect that follows the form.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the browser is gone; nobody is left to tell
}

func (p *Provider) errorPage(w http.ResponseWriter, status int, title, message string) {
	p.render(w, status, "error.html", page{Title: title, Message: message})
}

// browserID is the cookie that tells browsers apart; empty if there is none.
func (p *Provider) browserID(r *http.Request) string {
	c, err := r.Cookie(p.cookie)
	if err != nil {
		return ""
	}
	return c.Value
}

// newBrowser sets a fresh cookie. user is empty before sign-in. The mutex is not held.
func (p *Provider) newBrowser(w http.ResponseWriter, user string) string {
	id := rand.Text()
	p.mu.Lock()
	p.sessions[id] = user
	p.mu.Unlock()
	//nolint:gosec // G124: plain http on loopback, where browsers may drop a Secure cookie
	http.SetCookie(w, &http.Cookie{
		Name: p.cookie, Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: strings.HasPrefix(p.URL(), "https://"),
	})
	return id
}

// csrf binds a form to the browser and the request that it was made for.
func (p *Provider) csrf(browser, request string) string {
	mac := hmac.New(sha256.New, p.key)
	mac.Write([]byte(browser + "|" + request))
	return hex.EncodeToString(mac.Sum(nil))
}

// randomID is a public identifier, not a secret.
func randomID() string { return strings.ToLower(rand.Text()) }
