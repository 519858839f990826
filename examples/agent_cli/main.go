// Command agent_cli is a client of ADK's HTTP API, for a terminal: it says something to an agent, shows what comes of it, and
// answers what agents ask of a person. It needs nothing but Go's standard library.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// Exit statuses.
const (
	done = iota
	failed
	_
	waiting // something still waits for an answer
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Getenv("ADK_TOKEN"), os.Stdin, os.Stdout, os.Stderr) //nolint:forbidigo // a program of its own
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, token string, in io.Reader, out, problems io.Writer) int {
	p := person{in: bufio.NewReader(in), out: out}
	c := client{token: token, say: p.say}
	flags := flag.NewFlagSet("agent_cli", flag.ContinueOnError)
	flags.SetOutput(problems)
	flags.StringVar(&c.server, "server", "http://127.0.0.1:8080", "`URL` of the server")
	flags.StringVar(&c.app, "app", "", "the only one that there is, if not set")
	flags.StringVar(&c.user, "user", "user", "whose sessions")
	id := flags.String("session", "", "go on with it; without a message: from where it is")
	flags.StringVar(&p.redirect, "redirect", "", "`URL` that logins come back to, if the server allows it; at 127.0.0.1 this program listens")
	flags.Usage = func() {
		fmt.Fprintln(problems, "Usage: agent_cli [flags] [message]\n\nADK_TOKEN: the bearer token, where the server wants one. Exit status 3: something still waits.")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return 2
	}
	message := strings.Join(flags.Args(), " ")
	if message == "" && *id == "" {
		flags.Usage()
		return 2
	}
	status, err := converse(ctx, &c, &p, *id, message)
	if err != nil {
		fmt.Fprintln(problems, printable("agent_cli: "+err.Error()))
	}
	return status
}

// converse says message, or with none goes on with the session, and answers until nothing waits any more.
func converse(ctx context.Context, c *client, p *person, id, message string) (int, error) {
	if err := c.findApp(ctx); err != nil {
		return failed, err
	}
	s := session{asked: map[string]asked{}, seen: map[string]bool{}, say: p.say}
	first := map[string]any{"newMessage": content{Role: "user", Parts: []part{{Text: message}}}}
	switch {
	case message == "":
		var stored struct{ Events []event }
		if err := c.call(ctx, "GET", c.sessions()+"/"+url.PathEscape(id), nil, &stored); err != nil {
			return failed, err
		}
		for _, e := range stored.Events {
			s.take(e)
		}
		if s.invocation == "" {
			return failed, fmt.Errorf("session %s is empty; say something", id)
		}
		first = map[string]any{"invocationId": s.invocation} // ADK's way to go on, without a message
	case id == "":
		var made struct{ ID string }
		if err := c.call(ctx, "POST", c.sessions(), struct{}{}, &made); err != nil {
			return failed, err
		}
		id = made.ID
		fallthrough
	default:
		p.say("(session " + id + ")")
	}
	if err := c.run(ctx, id, first, s.take); err != nil {
		return failed, err
	}
	for len(s.asked) > 0 {
		replies, err := p.answer(ctx, s.waiting())
		if errors.Is(err, io.EOF) {
			p.say("\n(still waiting; go on with --app " + c.app + " --session " + id + ")")
			return waiting, nil
		}
		if err != nil {
			return failed, err
		}
		err = c.run(ctx, id, map[string]any{"newMessage": content{Role: "user", Parts: replies}}, s.take)
		var no *refused
		if errors.As(err, &no) { // such as an answer that does not fit; the question stands
			p.say("(refused: " + no.text + ")")
		} else if err != nil {
			return failed, err
		}
	}
	if s.failed {
		return failed, nil
	}
	return done, nil
}

// session is what was said, and what waits for the person.
type session struct {
	asked      map[string]asked // by the call that goes on after the reply
	order      []string
	seen       map[string]bool
	invocation string
	failed     bool
	say        func(string)
}

type asked struct {
	author string
	call   *functionCall
}

// take shows an event and keeps what it asks, once, whether it comes from a stream or from the stored session.
func (s *session) take(e event) {
	if e.Partial || s.seen[e.ID] {
		return
	}
	s.seen[e.ID] = true
	s.invocation = e.InvocationID
	s.failed = e.ErrorCode != "" || e.ErrorMessage != ""
	if e.speaks() { // an agent goes on when everything that it has asked for is there
		for id, a := range s.asked {
			if a.author == e.Author {
				delete(s.asked, id)
			}
		}
	}
	for _, p := range e.Content.Parts {
		if p.Text != "" {
			s.say(e.Author + ": " + p.Text)
		}
		if call := p.FunctionCall; call != nil {
			if !call.requests() {
				s.say(e.Author + " calls " + call.Name + " " + compact(call.Args))
			}
			if slices.Contains(e.LongRunningToolIDs, call.ID) { // only what the server marks so asks a person; a model may write anything
				s.asked[call.waits()] = asked{e.Author, call}
				s.order = append(s.order, call.waits())
			}
		}
		if r := p.FunctionResponse; r != nil {
			if r.WillContinue {
				s.say(r.Name + " says so far " + compact(r.Response))
				continue
			}
			s.say(r.Name + " answers " + compact(r.Response))
			delete(s.asked, r.ID)
		}
	}
	if s.failed {
		s.say(e.Author + " failed: " + e.ErrorCode + " " + e.ErrorMessage)
	}
}

// waiting are the calls to reply to, in the order in which they were asked.
func (s *session) waiting() (out []*functionCall) {
	for i, id := range s.order {
		if a, ok := s.asked[id]; ok && !slices.Contains(s.order[i+1:], id) {
			out = append(out, a.call)
		}
	}
	return out
}
