package web

import (
	_ "embed"
	"fmt"
	"html/template"
	"io/fs"
	"strings"
	"time"
	"unicode"
)

//go:embed layout.html
var layout string

// Frame is what the layout shows of every page. A page's view embeds it.
type Frame struct {
	// Title is the window's: what waits, or what has happened. It need not be clean.
	Title string
	// Reference is the request id, for pages that say what went wrong; empty for others.
	Reference string
}

// Who is a person on a page, for the template "who". It need not be clean.
type Who struct {
	// Name is what the person is called; empty where only the id is known, such as on an operator's pages.
	Name string
	User string
}

// Templates are the layout with a package's pages, which begin with the template "head" and end with "foot". Texts of others
// pass through one of the functions plain, long and host; date and iso write times.
func Templates(files fs.FS, more template.FuncMap) (*template.Template, error) {
	pages := template.New("").Funcs(template.FuncMap{"style": Stylesheet, "plain": plain, "long": long, "host": Host, "date": date, "iso": iso}).Funcs(more)
	pages, err := pages.Parse(layout)
	if err == nil && files != nil {
		pages, err = pages.ParseFS(files, "pages/*.html")
	}
	if err != nil {
		return nil, fmt.Errorf("parse pages: %w", err)
	}
	return pages, nil
}

// Bounds of what others write on a page, in bytes.
const (
	maxShown = 200     // a name: one must not push the others out of sight
	maxLong  = 4 << 10 // a text
	maxHost  = 300     // more than a name in the DNS with a port can have; of a host, the end says whose it is
)

// plain keeps a name from changing how the text around it reads: control and bidirectional format characters are
// replaced, and what is too long is cut.
func plain(s string) string { return clean(s, maxShown) }

func long(s string) string { return clean(s, maxLong) }

// Host is a host as pages show it.
func Host(s string) string { return clean(s, maxHost) }

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
