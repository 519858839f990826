package main

import (
	"errors"
	"fmt"
	"strings"
)

// Exit statuses.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUnusable    = 2
	exitWaiting     = 3
	exitDenied      = 4
	exitCancelled   = 5
	exitExplanation = `Exit status:
  0  done
  1  failed
  2  wrong use, or the server cannot be reached
  3  still waiting: for a login, or detached from a run that goes on
  4  a login was denied or has expired
  5  cancelled`
)

// statusError ends a command with a status and, if it has one, a line that says why.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

func (e *statusError) Unwrap() error { return e.err }

// failed is an error of what was asked for, unusable one of how it was asked for.
func failed(format string, args ...any) error {
	return &statusError{exitFailed, fmt.Errorf(format, args...)}
}

func unusable(format string, args ...any) error {
	return &statusError{exitUnusable, fmt.Errorf(format, args...)}
}

// ended is a status without a line: everything was said.
func ended(status int) error {
	if status == exitDone {
		return nil
	}
	return &statusError{status: status}
}

// exit says what went wrong in one line, and returns the status. An error that no command made is cobra's: wrong use.
func (a *app) exit(err error) int {
	var s *statusError
	switch {
	case err == nil:
		return exitDone
	case !errors.As(err, &s):
		first, _, _ := strings.Cut(err.Error(), "\n")
		a.say("starter: %s (see starter --help)", first)
		return exitUnusable
	case s.err != nil:
		a.say("starter: %v", s.err)
	}
	return s.status
}
