package tools

import (
	"errors"
	"fmt"
)

// Error is a failure that the model is told about, as the call's response. Message must hold no secret.
type Error struct {
	Message string
	// Cause is for the log.
	Cause error
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Errorf makes an [*Error].
func Errorf(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// ErrNotExecuted marks (by wrapping) a failure before the call reached the tool: the connection was refused, the name was
// not resolved. Such a call may be tried again whatever the tool does.
var ErrNotExecuted = errors.New("tools: not executed")

// ErrUnknown marks a failure after which nobody knows whether the call took effect: a connection that broke in the
// middle, a gateway's 502. Only an idempotent tool is tried again after it.
var ErrUnknown = errors.New("tools: outcome unknown")
