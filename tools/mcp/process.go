package mcp

import (
	"context"
	"os/exec"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/tools"
)

// closingTime is more than go-sdk needs to close standard input, to ask a process to end and to kill it.
const closingTime = 4 * partingTimeout

// process is a server that runs on this machine. A nil one is not there.
type process struct{ cmd *exec.Cmd }

// command starts nothing yet.
func (c *conn) command(ctx context.Context) (sdk.Transport, *session, error) {
	if !c.opener.cfg.AllowStdio {
		return nil, nil, tools.Errorf("toolset %s: servers that run as a process are not allowed here", c.def.Name)
	}
	env, err := c.resolve(ctx, c.def.Env)
	if err != nil {
		return nil, nil, err
	}
	// Not CommandContext: closing standard input lets the server end by itself.
	cmd := exec.Command(c.def.Command, c.def.Args...) //nolint:gosec,noctx // the operator allowed the commands of definitions
	cmd.Env = []string{}                              // never nil: nil would inherit the worker's environment and its secrets
	for _, variable := range c.opener.cfg.StdioEnv {
		cmd.Env = append(cmd.Env, variable.Reveal())
	}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value.Reveal())
	}
	group(cmd)
	return &sdk.CommandTransport{Command: cmd, TerminateDuration: partingTimeout}, &session{process: &process{cmd}}, nil
}

func (p *process) kill() {
	if p != nil && p.cmd.Process != nil {
		killGroup(p.cmd)
	}
}

// killAfter kills the process when it still keeps its caller some time after ctx ended. A process that does not read keeps
// whoever writes to it. Call stop at the end.
func (p *process) killAfter(ctx context.Context) (stop func()) {
	if p == nil {
		return func() {}
	}
	done := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(partingTimeout):
			p.kill()
		}
	})
	return func() {
		unhook()
		close(done)
	}
}
