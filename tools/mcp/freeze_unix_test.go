//go:build unix

package mcp_test

import (
	"os"
	"syscall"
)

// freeze stops this process as a debugger would: it reads nothing any more, and only SIGKILL ends it.
func freeze() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	select {} // another thread may have taken the signal
}
