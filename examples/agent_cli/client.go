package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// silence is how long a connection may be without a byte; servers send a comment every 15 seconds.
const silence = time.Minute

// client is ADK's API for one user of one app.
type client struct {
	server, token, app, user string
	say                      func(string)
}

// refused says that the server will not do it, and that asking again does not help.
type refused struct{ text string }

func (e *refused) Error() string { return e.text }

func (c *client) open(ctx context.Context, method, path string, body any, header http.Header) (*http.Response, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimRight(c.server, "/")+path, bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	if header != nil {
		r.Header = header.Clone()
	}
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	// Redirects are not followed: the token is for the server that was named.
	h := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return h.Do(r) //nolint:wrapcheck // says what it is
}

func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	response, err := c.open(ctx, method, path, in, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if response.StatusCode != http.StatusOK {
		return &refused{fmt.Sprintf("%s %s: %s %s", method, path, response.Status, body)}
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

func (c *client) sessions() string {
	return "/apps/" + url.PathEscape(c.app) + "/users/" + url.PathEscape(c.user) + "/sessions"
}

func (c *client) findApp(ctx context.Context) error {
	if c.app != "" {
		return nil
	}
	var apps []string
	if err := c.call(ctx, "GET", "/list-apps", nil, &apps); err != nil {
		return err
	}
	if len(apps) != 1 {
		return fmt.Errorf("-app is missing; there are: %s", strings.Join(apps, ", "))
	}
	c.app = apps[0]
	return nil
}

// run hands the events that follow to take. A stream that breaks is taken up where it broke: the same body with the id of the
// last frame posts nothing twice, and before there is a first frame the key sees to that.
func (c *client) run(ctx context.Context, session string, more map[string]any, take func(event)) error {
	body := map[string]any{"appName": c.app, "userId": c.user, "sessionId": session, "streaming": false}
	for key, value := range more {
		body[key] = value
	}
	header := http.Header{"Accept": {"text/event-stream"}, "Idempotency-Key": {rand.Text()}}
	const first, longest = 500 * time.Millisecond, 30 * time.Second
	pause := first
	for {
		again, err := c.stream(ctx, body, header, func(e event) { pause = first; take(e) })
		if !again {
			return err
		}
		c.say("(the server is out of reach; trying again)")
		select {
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the person has interrupted
		case <-time.After(pause):
		}
		pause = min(2*pause, longest)
	}
}

// stream says whether the same request should be sent again.
func (c *client) stream(ctx context.Context, body any, header http.Header, take func(event)) (again bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	response, err := c.open(ctx, "POST", "/run_sse", body, header)
	if err != nil {
		return true, nil // it may come back
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16)) // what came of it
		return later(response.StatusCode), &refused{response.Status + " " + string(text)}
	}
	lines := bufio.NewReader(response.Body)
	var id, data string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return !errors.Is(err, io.EOF), nil
		}
		quiet.Reset(silence)
		field, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "id":
			id = value
		case field == "data":
			data += value + "\n"
		case strings.TrimSpace(line) == "" && data != "":
			var e event
			if err := json.Unmarshal([]byte(data), &e); err != nil {
				return false, fmt.Errorf("read event: %w", err)
			}
			if e.Error != "" {
				return later(e.ErrorDetails.Status), &refused{e.Error}
			}
			if id != "" {
				header.Set("Last-Event-ID", id)
			}
			take(e)
			data = ""
		}
	}
}

// later says whether the same request should be sent once more after an answer of that status.
func later(status int) bool {
	switch status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
