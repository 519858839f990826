package stack

import "syscall"

// attributes puts a process into a group of its own, so that Ctrl-C in a terminal reaches the parent only, which then
// stops its children in order; and has the kernel end it should the parent be killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
