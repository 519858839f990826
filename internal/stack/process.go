package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one life of a program.
type process struct {
	name  Name
	log   string
	cmd   *exec.Cmd
	ready chan string   // gets the address of the line "ready ADDRESS"
	done  chan struct{} // closed when the process has ended and been waited for

	mu    sync.Mutex
	asked bool  // somebody ended it
	err   error // of Wait; set before done is closed
}

// launch starts a program with its output going to the log file.
func launch(name Name, log, path string, args, env []string) (*process, error) {
	p := &process{name: name, log: log, ready: make(chan string, 1), done: make(chan struct{})}
	if err := os.MkdirAll(filepath.Dir(log), 0o700); err != nil {
		return nil, fmt.Errorf("make log directory: %w", err)
	}
	file, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe: %w", err), file.Close())
	}
	// Not CommandContext: a context would kill the process alone and not its group, and would not ask first.
	p.cmd = exec.Command(path, args...) //nolint:noctx // see above
	p.cmd.Env = env
	p.cmd.Stdout, p.cmd.Stderr = in, file
	p.cmd.SysProcAttr = attributes()
	started := make(chan error)
	go p.live(started, in)
	if err := <-started; err != nil {
		return nil, errors.Join(fmt.Errorf("start %s: %w", name, err), out.Close(), file.Close())
	}
	go p.read(out, file)
	return p, nil
}

// live starts the process and waits for it on one thread: the kernel takes the death of the thread that started a process
// for the death of its parent.
func (p *process) live(started chan<- error, stdout *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	_ = stdout.Close() // the child has its own
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	// What a killed process had started is in its group still.
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	close(p.done)
}

// read copies standard output to the log and finds the line that says ready.
func (p *process) read(out, log *os.File) {
	defer func() { _, _ = out.Close(), log.Close() }()
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		_, _ = log.WriteString(line)
		if addr, ok := strings.CutPrefix(strings.TrimSpace(line), "ready "); ok {
			select {
			case p.ready <- addr:
			default:
			}
		}
		if err != nil {
			return
		}
	}
}

// waitReady returns when the process has said so; if it ends first or takes too long, the error has the log's tail.
func (p *process) waitReady(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.ready:
		return nil
	case <-p.done:
		return p.ended()
	case <-timer.C:
		return fmt.Errorf("%s is not ready after %s%s", p.name, limit, tail(p.log))
	case <-ctx.Done():
		return fmt.Errorf("start %s: %w", p.name, ctx.Err())
	}
}

// ended says how a process ended that nobody had ended.
func (p *process) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	how := "exit status 0"
	if p.err != nil {
		how = p.err.Error()
	}
	return fmt.Errorf("%s ended: %s%s", p.name, how, tail(p.log))
}

func (p *process) expected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// signal is for the whole group.
func (p *process) signal(sig syscall.Signal) error {
	p.mu.Lock()
	p.asked = true
	p.mu.Unlock()
	select {
	case <-p.done: // the pid may be another's by now
		return nil
	default:
	}
	if err := syscall.Kill(-p.cmd.Process.Pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal %s: %w", p.name, err)
	}
	return nil
}

// kill ends the process and returns when it is gone.
func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	if err == nil {
		<-p.done
	}
	return err
}

// stop asks the process to end and kills it if it does not.
func (p *process) stop(grace time.Duration) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed", p.name, grace), p.kill())
	}
}

const tailBytes = 2000

// tail is the end of a log for an error: it begins with a line of its own, or is empty.
func tail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return ""
		}
	}
	body, err := io.ReadAll(file)
	text := strings.TrimSpace(string(body))
	if err != nil || text == "" {
		return "; its log " + path + " is empty"
	}
	return "; the end of " + path + ":\n" + text
}
