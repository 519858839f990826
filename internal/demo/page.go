package demo

import (
	"bytes"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// Page is what the browser shows at the end of a navigation.
type Page struct {
	// URL is the last one, of which the body came, unless StopAt ended the navigation.
	URL    *url.URL
	Status int
	Header http.Header
	// Title and Text are what a person reads, with runs of white space made one space.
	Title, Text string
	Body        string
	// Forms in the order of the page.
	Forms []*Form
	// Links are the href of all anchors, as written.
	Links []string
	// Hops are the requests that led here; they may hold a code and a state.
	Hops []Hop
}

// Form is an HTML form with the values that it would send untouched.
type Form struct {
	// Method is GET or POST; Action is as written, empty for the page's own URL.
	Method, Action string
	ID, Name       string
	Fields         url.Values
	// Types are the input types by field name, such as "hidden" and "password".
	Types   map[string]string
	Buttons []*Button
}

// Button submits a form.
type Button struct {
	Name, Value, Text string
	// Action replaces that of the form if it is not empty.
	Action string
}

// HasType reports whether the form has a field of the input type.
func (f *Form) HasType(inputType string) bool {
	for _, t := range f.Types {
		if t == inputType {
			return true
		}
	}
	return false
}

// Button returns the first button with one of the words in its name, value or text, ignoring case; nil if there is none.
func (f *Form) Button(words ...string) *Button {
	for _, b := range f.Buttons {
		all := strings.ToLower(b.Name + " " + b.Value + " " + b.Text)
		for _, w := range words {
			if strings.Contains(all, strings.ToLower(w)) {
				return b
			}
		}
	}
	return nil
}

func newPage(u *url.URL, resp *http.Response, body []byte, hops []Hop) (*Page, error) {
	p := &Page{URL: u, Status: resp.StatusCode, Header: resp.Header, Body: string(body), Hops: hops}
	if !strings.Contains(resp.Header.Get("Content-Type"), "html") {
		p.Text = strings.TrimSpace(p.Body)
		return p, nil
	}
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("parse page of %q: %w", u.Host, err)
	}
	p.read(doc)
	return p, nil
}

func (p *Page) read(doc *html.Node) {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "title":
			p.Title = text(n)
		case "body":
			p.Text = text(n)
		case "a":
			if href, ok := attr(n, "href"); ok {
				p.Links = append(p.Links, href)
			}
		case "form":
			p.Forms = append(p.Forms, newForm(n))
		}
	}
}

func newForm(n *html.Node) *Form {
	f := &Form{Method: http.MethodGet, Fields: url.Values{}, Types: map[string]string{}}
	if m, _ := attr(n, "method"); strings.EqualFold(m, "post") {
		f.Method = http.MethodPost
	}
	f.Action, _ = attr(n, "action")
	f.ID, _ = attr(n, "id")
	f.Name, _ = attr(n, "name")
	for c := range n.Descendants() {
		if _, off := attr(c, "disabled"); off || c.Type != html.ElementNode {
			continue
		}
		f.addControl(c)
	}
	return f
}

func (f *Form) addControl(n *html.Node) {
	name, _ := attr(n, "name")
	value, hasValue := attr(n, "value")
	kind, _ := attr(n, "type")
	kind = strings.ToLower(kind)
	action, _ := attr(n, "formaction")
	switch {
	case n.Data == "button" && (kind == "" || kind == "submit"):
		f.Buttons = append(f.Buttons, &Button{Name: name, Value: value, Text: text(n), Action: action})
	case n.Data == "input" && (kind == "submit" || kind == "image"):
		f.Buttons = append(f.Buttons, &Button{Name: name, Value: value, Text: value, Action: action})
	case name == "" || (n.Data == "input" && (kind == "button" || kind == "reset" || kind == "file")):
	case n.Data == "input" && (kind == "checkbox" || kind == "radio"):
		f.Types[name] = kind
		if _, on := attr(n, "checked"); on {
			if !hasValue {
				value = "on"
			}
			f.Fields.Add(name, value)
		}
	case n.Data == "input":
		if kind == "" {
			kind = "text"
		}
		f.Types[name] = kind
		f.Fields.Add(name, value)
	case n.Data == "textarea":
		f.Types[name] = n.Data
		f.Fields.Add(name, rawText(n))
	case n.Data == "select":
		f.Types[name] = n.Data
		f.addSelect(name, n)
	}
}

// addSelect takes the selected option, or the first.
func (f *Form) addSelect(name string, n *html.Node) {
	chosen, found := "", false
	for o := range n.Descendants() {
		if o.Type != html.ElementNode || o.Data != "option" {
			continue
		}
		value, ok := attr(o, "value")
		if !ok {
			value = text(o)
		}
		if _, selected := attr(o, "selected"); selected || !found {
			chosen, found = value, true
		}
	}
	if found {
		f.Fields.Add(name, chosen)
	}
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// text is what a person reads of n.
func text(n *html.Node) string { return strings.Join(strings.Fields(rawText(n)), " ") }

func rawText(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type != html.TextNode {
			continue
		}
		if p := c.Parent; p != nil && (p.Data == "script" || p.Data == "style") {
			continue
		}
		b.WriteString(c.Data)
		b.WriteString(" ")
	}
	return b.String()
}
