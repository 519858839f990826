package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"tarry/internal/demo"
)

// Variables by which the program reaches the client that the suite starts, through the suite's environment.
const (
	envProgram = "CONFORMANCE_PROGRAM"
	envMember  = "CONFORMANCE_MEMBER"
	envControl = "CONFORMANCE_CONTROL"
	envServer  = "CONFORMANCE_SERVER"
	envDir     = "CONFORMANCE_DIR"
)

// environment of a suite process.
func environment(svc *service, c *control, s scenario) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return append(os.Environ(), envProgram+"="+self, envMember+"="+s.id(), envControl+"="+c.url, envServer+"="+svc.URL(), envDir+"="+svc.dir)
}

// settings of a client.
type settings struct {
	member, control, server, dir string
	scenario, context            string
}

func clientSettings() settings {
	return settings{
		member: os.Getenv(envMember), control: os.Getenv(envControl), server: os.Getenv(envServer), dir: os.Getenv(envDir),
		scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"), context: os.Getenv("MCP_CONFORMANCE_CONTEXT"),
	}
}

const (
	// clientPatience is less than the suite's, so that the suite tells what the client says.
	clientPatience = suiteTimeout - 10*time.Second
	look           = 50 * time.Millisecond
)

// client plays one scenario.
type client struct {
	settings
	http    *http.Client
	browser *demo.Browser
	session string
}

// play does for the server at address what the scenario asks of a client.
func play(ctx context.Context, address string, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	c := &client{settings: s, http: &http.Client{Transport: &http.Transport{}}, browser: demo.NewBrowser()}
	var given given
	if s.context != "" {
		if err := json.Unmarshal([]byte(s.context), &given); err != nil {
			return fmt.Errorf("read the suite's context: %w", err)
		}
	}
	if err := writeAgent(s, address, given); err != nil {
		return err
	}
	if err := c.arrive(ctx, published, address); err != nil {
		return err
	}
	var started struct{ Session string }
	if err := c.call(ctx, http.MethodPost, "/apps/"+s.member+"/users/user/runs", map[string]string{"task": "Go."}, &started); err != nil {
		return err
	}
	c.session = started.Session
	return errors.Join(c.follow(ctx), c.send(ctx, http.MethodPost, c.control+"/leave?"+url.Values{"member": {c.member}}.Encode(), nil, nil))
}

// status is what the client needs of a run's.
type status struct {
	State            string
	InvocationStatus string `json:"invocation_status"`
	Error            string
	Denied           bool
	WaitingFor       []struct{ Request, Link, Provider string } `json:"waiting_for"`
}

// follow answers what the run asks until it ends.
func (c *client) follow(ctx context.Context) error {
	for {
		st, err := c.settled(ctx)
		if err != nil {
			return err
		}
		if len(st.WaitingFor) == 0 {
			return c.outcome(ctx, st)
		}
		fmt.Printf("the run waits: %+v\n", st.WaitingFor)
		if err := c.arrive(ctx, asked, st.WaitingFor[0].Provider); err != nil {
			return err
		}
		var errs []error
		for _, w := range st.WaitingFor {
			errs = append(errs, c.answer(ctx, w.Link))
		}
		if err := errors.Join(append(errs, c.arrive(ctx, answered, ""))...); err != nil {
			return err
		}
	}
}

// settled returns the run's status when it has ended or waits.
func (c *client) settled(ctx context.Context) (*status, error) {
	for {
		var st status
		if err := c.call(ctx, http.MethodGet, c.path("/status"), nil, &st); err != nil {
			return nil, err
		}
		if st.State != "new" && st.State != "running" || !slices.Contains([]string{"", "queued", "running"}, st.InvocationStatus) {
			return &st, nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return nil, fmt.Errorf("the run is %s: %w", st.State, ctx.Err())
		}
	}
}

// answer opens a link and submits the forms of its pages as a person would.
func (c *client) answer(ctx context.Context, link string) error {
	page, err := c.browser.Login(ctx, link, "user", "password")
	if err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	fmt.Printf("the last page is %d %q: %s\n", page.Status, page.Title, page.Text)
	if page.Status != http.StatusOK {
		return fmt.Errorf("answer: the last page is %d %q", page.Status, page.Title)
	}
	return nil
}

// outcome is nil if every call of a tool was answered.
func (c *client) outcome(ctx context.Context, st *status) error {
	var events []struct {
		Content struct {
			Parts []struct {
				FunctionResponse *struct {
					Name     string
					Response map[string]any
				}
			}
		}
	}
	if err := c.call(ctx, http.MethodGet, c.path("/events"), nil, &events); err != nil {
		return err
	}
	var errs []error
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if r := p.FunctionResponse; r != nil {
				fmt.Printf("%s: %v\n", r.Name, r.Response)
				if r.Response["error"] != nil || r.Response["isError"] == true {
					errs = append(errs, fmt.Errorf("tool %s failed", r.Name))
				}
			}
		}
	}
	if st.Error != "" || st.Denied || st.InvocationStatus != "done" {
		errs = append(errs, fmt.Errorf("the run ended as %s %s, denied %v: %s", st.State, st.InvocationStatus, st.Denied, st.Error))
	}
	return errors.Join(errs...)
}

func (c *client) path(of string) string {
	return "/apps/" + c.member + "/users/user/sessions/" + c.session + of
}

// arrive waits for the other scenarios of the round. address names a server that the scenario has, or is empty.
func (c *client) arrive(ctx context.Context, at point, address string) error {
	q := url.Values{"member": {c.member}, "point": {string(at)}}
	if u, err := url.Parse(address); err == nil && u.Port() != "" {
		q.Set("port", u.Port())
	}
	return c.send(ctx, http.MethodPost, c.control+"/arrive?"+q.Encode(), nil, nil)
}

func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	return c.send(ctx, method, c.server+path, in, out)
}

func (c *client) send(ctx context.Context, method, target string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the service: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, req.URL.Path, resp.Status, strings.TrimSpace(string(text)))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("read answer of %s: %w", req.URL.Path, err)
	}
	return nil
}
