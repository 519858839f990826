package main

import (
	"context"
	"errors"
	"strings"

	"tarry/internal/stack"
	"tarry/server/runs"
)

// start is scene 1: three processes and the other side of the login.
func (s *stage) start(ctx context.Context) error {
	s.scene("1. Everything starts")
	s.tell("directory %s", s.dir)
	s.tell("login provider %s and MCP server %s, in this process", s.provider.URL(), s.mcp.URL())
	if err := s.startAll(ctx); err != nil {
		return err
	}
	apps, err := s.api.apps(ctx)
	if err != nil {
		return err
	}
	s.tell("agents: %s; model: %s", strings.Join(apps, ", "), s.options.model)
	return nil
}

// startAll starts one process after the other and says when each is ready.
func (s *stage) startAll(ctx context.Context) error {
	for _, name := range stack.All() {
		if err := s.startOne(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) startOne(ctx context.Context, name stack.Name) error {
	if err := s.stack.Start(ctx, name); err != nil {
		return failed("%w", err)
	}
	s.note()
	s.tell("%-8s is ready at %s, pid %d", name, s.stack.Addr(name), s.stack.Pid(name))
	return nil
}

// begin is scene 2: a job starts.
func (s *stage) begin(ctx context.Context) error {
	s.scene("2. A job starts")
	run, err := s.api.start(ctx, demoApp, runs.Start{Task: demoTask, Mode: "job"})
	if err != nil {
		return err
	}
	s.target = target{client: s.api, app: demoApp, session: run.Session, invocation: run.Invocation}
	s.tell("%q is given to %s: session %s", demoTask, demoApp, run.Session)
	return nil
}

var errSeen = errors.New("seen")

// ask is scene 3: the tools cannot even be listed without a login.
func (s *stage) ask(ctx context.Context) error {
	s.scene("3. The tools need a login")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for s.link == "" {
		complete, err := s.api.stream(ctx, demoApp, s.target.session, s.target.invocation, s.last, func(e entry) error {
			s.show(e)
			if ask := e.event.asks(); ask != nil {
				s.link, _ = ask.link()
				return errSeen
			}
			return nil
		})
		if err != nil && !errors.Is(err, errSeen) {
			return err
		}
		if complete {
			return failed("the run ended without having asked for a login")
		}
	}
	var st *statusInfo
	err := until(ctx, patience, "the run waits", func() (ok bool, err error) {
		st, err = s.api.status(ctx, demoApp, s.target.session)
		return err == nil && st.State == stateWaiting && len(st.WaitingFor) == 1, err
	})
	if err != nil {
		return err
	}
	s.tell("the run is %q: it waits for %s at %s, scopes %s", inWords(&st.Run), subject(st.WaitingFor[0].Tool, st.WaitingFor[0].Toolset),
		st.WaitingFor[0].Provider, strings.Join(st.WaitingFor[0].Scopes, " "))
	s.check("the request has the event's link", st.WaitingFor[0].Link == s.link, "yes")
	return nil
}

// show tells an event of the run.
func (s *stage) show(e entry) {
	if e.seq > s.last {
		s.last = e.seq
	}
	if ask := e.event.asks(); ask != nil {
		s.tell("event %s from %s: id %s", requestCredential, e.event.Author, ask.ID)
		link, _ := ask.link()
		s.tell("link %s", link)
		return
	}
	for _, line := range lines(&e.event) {
		s.tell("%s", line)
	}
}
