package demo

import (
	"context"
	"errors"
	"net/http"
	"strings"
)

// maxSteps is more pages than any login has.
const maxSteps = 12

// Login opens connectURL and does what a person does to connect an account: presses the button there, signs in, allows
// access, and ends on the page that follows. connectURL may also be the provider's own authorization URL.
//
// It knows no page by its address. A form with a password field is a sign-in; a form with buttons to allow and to deny,
// or any form on another site than the first, is a consent; any other POST form has a button to go on with. Each is
// answered once per site, so a wrong password, an error or a refusal ends on the page that says so. Look at Status and
// Text.
func (b *Browser) Login(ctx context.Context, connectURL, user, password string) (*Page, error) {
	return b.walk(ctx, connectURL, user, password, true)
}

// Deny is Login with the other button on the consent page.
func (b *Browser) Deny(ctx context.Context, connectURL, user, password string) (*Page, error) {
	return b.walk(ctx, connectURL, user, password, false)
}

func (b *Browser) walk(ctx context.Context, connectURL, user, secret string, allow bool) (*Page, error) {
	page, err := b.Open(ctx, connectURL)
	if err != nil {
		return nil, err
	}
	start := origin(page.URL)
	answered := map[string]bool{}
	decided := false
	for range maxSteps {
		form, here := postForm(page), origin(page.URL)
		if form == nil || page.Status >= http.StatusBadRequest {
			return page, nil
		}
		password, consent := form.HasType("password"), isConsent(form)
		step := here + " form"
		if password {
			step = here + " password"
		}
		if answered[step] || (decided && !password && !consent) {
			return page, nil
		}
		answered[step] = true
		switch {
		case password:
			page, err = b.Submit(ctx, page, form, credentials(form, user, secret), first(form))
		case consent || here != start:
			decided = true
			page, err = b.decide(ctx, page, form, allow)
		default:
			page, err = b.Submit(ctx, page, form, nil, first(form))
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errors.New("login does not come to an end")
}

// decide presses the button to allow or to deny. Some consent pages deny by a link.
func (b *Browser) decide(ctx context.Context, page *Page, form *Form, allow bool) (*Page, error) {
	if allow {
		button := form.Button("approve", "allow", "accept", "authorize")
		if button == nil {
			button = first(form)
		}
		return b.Submit(ctx, page, form, nil, button)
	}
	if button := form.Button(denials()...); button != nil {
		return b.Submit(ctx, page, form, nil, button)
	}
	for _, href := range page.Links {
		for _, word := range append(denials(), "abort") {
			if strings.Contains(strings.ToLower(href), word) {
				return b.Follow(ctx, page, href)
			}
		}
	}
	return nil, errors.New("page has no way to deny")
}

// Press submits the page's POST form with the button that has one of the words in its name, value or text.
func (b *Browser) Press(ctx context.Context, page *Page, words ...string) (*Page, error) {
	for _, form := range page.Forms {
		if form.Method != http.MethodPost {
			continue
		}
		if button := form.Button(words...); button != nil {
			return b.Submit(ctx, page, form, nil, button)
		}
	}
	return nil, errors.New("page has no such button")
}

// SignIn fills in the page's sign-in form and sends it.
func (b *Browser) SignIn(ctx context.Context, page *Page, user, password string) (*Page, error) {
	for _, form := range page.Forms {
		if form.HasType("password") {
			return b.Submit(ctx, page, form, credentials(form, user, password), first(form))
		}
	}
	return nil, errors.New("page has no sign-in form")
}

// postForm is the form to go on with: one with a password field if there is one, else the first.
func postForm(page *Page) *Form {
	var found *Form
	for _, f := range page.Forms {
		if f.Method != http.MethodPost {
			continue
		}
		if f.HasType("password") {
			return f
		}
		if found == nil {
			found = f
		}
	}
	return found
}

// isConsent tells a consent page from a connect page with a button to cancel: one button allows in so many words.
func isConsent(f *Form) bool {
	return f.Button("approve", "allow") != nil && f.Button(denials()...) != nil
}

func denials() []string { return []string{"deny", "decline", "cancel", "reject"} }

// credentials fills the fields by name where they have the usual ones, else by type.
func credentials(f *Form, user, password string) map[string]string {
	out := map[string]string{}
	for name, kind := range f.Types {
		switch {
		case kind == "password":
			out[name] = password
		case name == "username" || name == "login" || kind == "email":
			out[name] = user
		}
	}
	return out
}

// first is the first button that does not deny, as Enter would press it.
func first(f *Form) *Button {
	deny := map[*Button]bool{}
	for _, b := range f.Buttons {
		one := &Form{Buttons: []*Button{b}}
		deny[b] = one.Button(denials()...) != nil
	}
	for _, b := range f.Buttons {
		if !deny[b] {
			return b
		}
	}
	return nil
}
