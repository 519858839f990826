//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// group puts the process and what it starts into a group of their own. A signal to the worker's group, as by Ctrl-C, then
// does not end servers before the calls that they answer.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // gone already, mostly
