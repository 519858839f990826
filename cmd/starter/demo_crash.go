package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"tarry/internal/stack"
)

// crash is scene 4: every process is killed while the run waits, and nothing is lost.
func (s *stage) crash(ctx context.Context) error {
	s.scene("4. Every process is killed")
	before := pids(s.stack)
	if err := s.stack.Kill(); err != nil {
		return failed("%w", err)
	}
	s.tell("kill -9: %s", before)
	if err := s.nothingRuns(ctx, stack.All()...); err != nil {
		return err
	}
	s.tell("nothing runs: no process is left and no port is open; the run waits in two files")
	if err := s.startAll(ctx); err != nil {
		return err
	}
	st, err := s.api.status(ctx, demoApp, s.target.session)
	if err != nil {
		return err
	}
	same := st.State == stateWaiting && len(st.WaitingFor) == 1 && st.WaitingFor[0].Link == s.link
	s.check("the run still waits, with the same link", same, "yes")
	s.tell("the run is %q, its link is the same: %t", inWords(&st.Run), same)
	return nil
}

// nothingRuns looks for the processes and their ports.
func (s *stage) nothingRuns(ctx context.Context, names ...stack.Name) error {
	var left []string
	for _, name := range names {
		if s.stack.Pid(name) != 0 || open(ctx, s.stack.Addr(name)) {
			left = append(left, string(name))
		}
	}
	for _, pid := range s.seen {
		if len(names) == len(stack.All()) && alive(pid) {
			left = append(left, fmt.Sprintf("pid %d", pid))
		}
	}
	if len(left) > 0 {
		return failed("still there after being killed: %s", strings.Join(left, ", "))
	}
	return nil
}

func open(ctx context.Context, addr string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
