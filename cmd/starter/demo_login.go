package main

import (
	"context"
	"strings"
	"time"

	"tarry/internal/stack"
)

// The person that the demo's provider knows.
const (
	demoUser     = "alice"
	demoPassword = "alice-password"
)

// personPatience is how long the demo waits for a person.
const personPatience = 15 * time.Minute

// login is scene 5: somebody logs in while no worker lives.
func (s *stage) login(ctx context.Context) error {
	s.scene("5. The login comes while the worker is down")
	pid := s.stack.Pid(stack.Worker)
	if err := s.stack.Kill(stack.Worker); err != nil {
		return failed("%w", err)
	}
	if err := s.nothingRuns(ctx, stack.Worker); err != nil {
		return err
	}
	s.tell("kill -9: worker %d", pid)
	connect := s.person
	if s.options.auto {
		connect = s.robot
	}
	if err := connect(ctx); err != nil {
		return err
	}
	s.check("the worker was down during the login", s.stack.Pid(stack.Worker) == 0, "yes")
	st, err := s.api.status(ctx, demoApp, s.target.session)
	if err != nil {
		return err
	}
	s.tell("the login is kept: open requests %d, model calls so far %d", len(st.WaitingFor), st.ModelCalls)
	return s.startOne(ctx, stack.Worker)
}

// robot goes through the pages as a person would.
func (s *stage) robot(ctx context.Context) error {
	page, err := s.browser.Open(ctx, s.link)
	if err != nil {
		return failed("open link: %w", err)
	}
	s.bodies.add([]byte(page.Body))
	s.tell("browser: %q: %s", page.Title, brief(page.Text))
	page, err = s.browser.Login(ctx, s.link, demoUser, demoPassword)
	if err != nil {
		return failed("log in: %w", err)
	}
	s.bodies.add([]byte(page.Body))
	s.tell("browser, after signing in as %s and allowing access: %q: %s", demoUser, page.Title, brief(page.Text))
	s.check(`the page said "Connected"`, page.Status == 200 && strings.Contains(page.Text, "Connected"), "yes")
	return nil
}

// person waits until somebody has opened the link and decided.
func (s *stage) person(ctx context.Context) error {
	s.tell("now you: open this link and sign in as %s with the password %s", demoUser, demoPassword)
	s.tell("%s", s.link)
	status := ""
	err := until(ctx, personPatience, "somebody logs in", func() (bool, error) {
		logins, err := s.api.logins(ctx, true)
		if err != nil || len(logins) != 1 {
			return false, err
		}
		status = string(logins[0].Status)
		return !logins[0].Status.Open(), nil
	})
	if err != nil {
		return err
	}
	s.tell("the login is %s", status)
	s.check("the login is granted", status == "granted", "yes")
	return nil
}
