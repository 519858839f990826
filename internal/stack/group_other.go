//go:build !linux

package stack

import "syscall"

// attributes puts a process into a group of its own, so that Ctrl-C in a terminal reaches the parent only, which then
// stops its children in order. Other systems than Linux have no signal at a parent's death: a parent that is killed
// leaves its children behind.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
