package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
)

// person is who sits at the terminal.
type person struct {
	in       *bufio.Reader
	out      io.Writer
	redirect string
}

func (p *person) say(text string) { fmt.Fprintln(p.out, printable(text)) }

// ask returns a line; [io.EOF] when nobody is there.
func (p *person) ask(prompt string) (string, error) {
	fmt.Fprint(p.out, printable(prompt))
	line, err := p.in.ReadString('\n')
	if err != nil && line == "" {
		return "", io.EOF
	}
	return strings.TrimSpace(line), nil
}

// answer asks one question after the other. Those that are left for later are not replied to; if all are, nobody is there.
func (p *person) answer(ctx context.Context, calls []*functionCall) (replies []part, err error) {
	for _, call := range calls {
		response, err := p.respond(ctx, call)
		if err != nil {
			return nil, err
		}
		if response != nil {
			replies = append(replies, part{FunctionResponse: &functionResponse{ID: call.ID, Name: call.Name, Response: response}})
		}
	}
	if len(replies) == 0 {
		return nil, io.EOF
	}
	return replies, nil
}

// respond returns a response, or nil for later.
func (p *person) respond(ctx context.Context, call *functionCall) (any, error) {
	args := call.arguments()
	switch call.Name {
	case requestCredential:
		return p.logIn(ctx, args.AuthConfig)
	case requestConfirmation:
		original := args.OriginalFunctionCall
		said, err := p.ask("Run " + original.Name + " " + compact(original.Args) + "? " + args.ToolConfirmation.Hint + " [y/N] ")
		said = strings.ToLower(said)
		return map[string]any{"confirmed": said == "y" || said == "yes"}, err
	case requestInput:
		prompt := args.Message
		if len(args.ResponseSchema) > 0 {
			prompt += " (" + compact(args.ResponseSchema) + ")"
		}
		said, err := p.ask(prompt + " > ")
		return map[string]any{"result": said}, err
	}
	said, err := p.ask("Result of " + call.Name + ", as JSON or text; empty for later > ")
	if err != nil || said == "" {
		return nil, err
	}
	var value any
	if json.Unmarshal([]byte(said), &value) != nil {
		value = said
	}
	if object, ok := value.(map[string]any); ok {
		return object, nil
	}
	return map[string]any{"result": value}, nil
}

// logIn has the person log in, and returns the config with the address that the browser came back to, if there is one.
func (p *person) logIn(ctx context.Context, config map[string]any) (any, error) {
	exchanged, _ := config["exchangedAuthCredential"].(map[string]any)
	oauth, _ := exchanged["oauth2"].(map[string]any)
	link, _ := oauth["authUri"].(string)
	if link == "" {
		return nil, errors.New("the request for a login has no authUri")
	}
	if p.redirect != "" { // authUri may have a query of its own
		join := "?"
		if strings.Contains(link, "?") {
			join = "&"
		}
		link += join + url.Values{"redirect_uri": {p.redirect}}.Encode()
		oauth["redirectUri"] = p.redirect
	}
	p.say("Log in here:\n  " + link)
	back, err := url.Parse(p.redirect)
	switch {
	case err != nil:
		return nil, fmt.Errorf("-redirect: %w", err)
	case p.redirect == "":
		_, err = p.ask("Press Enter when you have. ")
	case back.Hostname() == "127.0.0.1" || back.Hostname() == "localhost":
		state, _ := oauth["state"].(string)
		oauth["authResponseUri"], err = listen(ctx, back, state)
	default:
		oauth["authResponseUri"], err = p.ask("Paste the address that your browser has come to: ")
	}
	return config, err
}

// listen serves redirect until the browser comes back to it with the right state, and returns the address.
func listen(ctx context.Context, redirect *url.URL, state string) (string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", redirect.Host)
	if err != nil {
		return "", fmt.Errorf("wait for the browser: %w", err)
	}
	came := make(chan string, 1)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != redirect.Path || r.URL.Query().Get("state") != state {
			http.NotFound(w, r)
			return
		}
		fmt.Fprintln(w, "You can close this window.")
		at := *redirect
		at.RawQuery = r.URL.RawQuery
		select {
		case came <- at.String():
		default:
		}
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Shutdown(context.WithoutCancel(ctx)) }()
	select {
	case address := <-came:
		return address, nil
	case <-ctx.Done():
		return "", ctx.Err() //nolint:wrapcheck // the person has interrupted
	}
}

// printable keeps what comes from models, tools and servers from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func compact(value any) string {
	if raw, ok := value.(json.RawMessage); ok && len(raw) == 0 {
		value = struct{}{}
	}
	text, _ := json.Marshal(value)
	if short := []rune(string(text)); len(short) > 500 {
		return string(short[:500]) + "…"
	}
	return string(text)
}
