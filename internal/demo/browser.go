package demo

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxHops is where browsers give up too.
const maxHops = 20

// Browser follows pages as a person's browser would: cookies, redirects, forms, and the headers by which servers tell
// a navigation of their own site from another's (Origin, Referer, Sec-Fetch-Site). It runs no scripts, and of SameSite
// it knows what net/http/cookiejar knows. It keeps cookies and no page, so it is safe for concurrent use, like a
// browser with several tabs; a second person is a second Browser.
type Browser struct {
	client *http.Client
	// StopAt ends a chain of redirects before a URL for which it is true; nil follows all. The page then has the
	// redirect's status and the URL that was not opened. Set it before use.
	StopAt func(*url.URL) bool
	// Header is added to every request. Set it before use.
	Header http.Header
}

// NewBrowser returns a browser without cookies.
func NewBrowser() *Browser {
	jar, _ := cookiejar.New(nil) // never an error without options
	return &Browser{client: &http.Client{
		Transport: &http.Transport{DisableKeepAlives: true}, // nothing is left open when a test ends
		Jar:       jar,
		Timeout:   time.Minute,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Trust makes the browser take certificates of one more CA, in PEM. Call it before use.
func (b *Browser) Trust(ca []byte) error {
	roots, err := x509.SystemCertPool()
	if err != nil {
		return fmt.Errorf("read certificates of the system: %w", err)
	}
	if !roots.AppendCertsFromPEM(ca) {
		return errors.New("trust: no certificate in PEM")
	}
	b.client.Transport = &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	return nil
}

// Cookies returns what the browser would send to rawURL.
func (b *Browser) Cookies(rawURL string) []*http.Cookie {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil
	}
	return b.client.Jar.Cookies(u)
}

// Hop is one request of a navigation.
type Hop struct {
	Method, URL string
	Status      int
}

// navigation is a request on its way through redirects.
type navigation struct {
	method string
	url    *url.URL
	form   url.Values
	// from is the page it started on; nil if the person typed the address.
	from *Page
	// site is the worst relation so far between from and the URLs of the chain.
	site string
}

// Open goes to rawURL as if it were typed in. Any status is a page and no error.
func (b *Browser) Open(ctx context.Context, rawURL string) (*Page, error) {
	return b.open(ctx, rawURL, nil)
}

// Follow goes to rawURL, which may be relative, as if it were a link on page.
func (b *Browser) Follow(ctx context.Context, page *Page, rawURL string) (*Page, error) {
	return b.open(ctx, rawURL, page)
}

func (b *Browser) open(ctx context.Context, rawURL string, from *Page) (*Page, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errors.New("open page: not a URL") // the parser's text would repeat it
	}
	if from != nil {
		u = from.URL.ResolveReference(u)
	}
	return b.navigate(ctx, navigation{method: http.MethodGet, url: u, from: from})
}

// Submit sends form as it stands on page, with fields set and button pressed; nil presses none.
func (b *Browser) Submit(ctx context.Context, page *Page, form *Form, fields map[string]string, button *Button) (*Page, error) {
	values := url.Values{}
	for k, v := range form.Fields {
		values[k] = slices.Clone(v)
	}
	for k, v := range fields {
		values.Set(k, v)
	}
	action := form.Action
	if button != nil {
		if button.Name != "" {
			values.Add(button.Name, button.Value)
		}
		if button.Action != "" {
			action = button.Action
		}
	}
	u, err := url.Parse(action)
	if err != nil {
		return nil, errors.New("submit form: action is not a URL")
	}
	u = page.URL.ResolveReference(u)
	n := navigation{method: form.Method, url: u, from: page, form: values}
	if form.Method == http.MethodGet {
		target := *u
		target.RawQuery = values.Encode()
		n.url, n.form = &target, nil
	}
	return b.navigate(ctx, n)
}

func (b *Browser) navigate(ctx context.Context, n navigation) (*Page, error) {
	var hops []Hop
	for range maxHops {
		resp, err := b.send(ctx, &n)
		if err != nil {
			return nil, err
		}
		hops = append(hops, Hop{Method: n.method, URL: n.url.String(), Status: resp.StatusCode})
		body, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
		_ = resp.Body.Close()
		if err != nil {
			return nil, fmt.Errorf("read page of %q: %w", n.url.Host, err)
		}
		location := resp.Header.Get("Location")
		if location == "" || resp.StatusCode < 300 || resp.StatusCode > 399 {
			return newPage(n.url, resp, body, hops)
		}
		next, err := n.url.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("redirect of %q: not a URL", n.url.Host)
		}
		if b.StopAt != nil && b.StopAt(next) {
			return newPage(next, resp, body, hops)
		}
		n.url = next
		if s := resp.StatusCode; s != http.StatusTemporaryRedirect && s != http.StatusPermanentRedirect {
			n.method, n.form = http.MethodGet, nil
		}
	}
	return nil, errors.New("too many redirects")
}

func (b *Browser) send(ctx context.Context, n *navigation) (*http.Response, error) {
	var body io.Reader
	if n.form != nil {
		body = strings.NewReader(n.form.Encode())
	}
	req, err := http.NewRequestWithContext(ctx, n.method, n.url.String(), body)
	if err != nil {
		return nil, errors.New("make request: bad URL or method")
	}
	for k, v := range b.Header {
		req.Header[k] = slices.Clone(v)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
	if n.form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	n.setOriginHeaders(req.Header)
	resp, err := b.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a code
		}
		return nil, fmt.Errorf("open page of %q: %w", n.url.Host, err)
	}
	return resp, nil
}
