package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tarry/internal/stack"
)

// programs is the directory of devserver, worker and server: beside this program, unless it is named.
func programs(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	return filepath.Dir(self), nil
}

// base is what every child gets of the environment.
func (a *app) base() []string {
	return a.pass("PATH", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR")
}

// modelKeys are for the worker only.
func modelKeys() []string {
	return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GEMINI_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
}

// pass takes variables out of the environment, those that are set.
func (a *app) pass(names ...string) []string {
	var out []string
	for _, name := range names {
		if value := a.getenv(name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}

// pids names the processes with their ids.
func pids(s *stack.Stack) string {
	return fmt.Sprintf("temporal %d, worker %d, server %d", s.Pid(stack.Temporal), s.Pid(stack.Worker), s.Pid(stack.Server))
}
