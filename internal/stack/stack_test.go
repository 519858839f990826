package stack_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

func setup(t *testing.T, change func(*stack.Config)) *stack.Stack {
	t.Helper()
	cfg := stack.Config{Dir: filepath.Join(t.TempDir(), "data"), Bin: bin(t), Base: []string{"PATH=" + os.Getenv("PATH")}}
	if change != nil {
		change(&cfg)
	}
	s, err := stack.New(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// environment asks a fake for what it was given.
func environment(t *testing.T, addr string) map[string]string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr, nil)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	var list []string
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	out := map[string]string{}
	for _, setting := range list {
		name, value, _ := strings.Cut(setting, "=")
		out[name] = value
	}
	return out
}

func listens(addr string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", addr)
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func eventuallyGone(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool {
		if gone(pid) {
			return true
		}
		// Where the test runs without an init that reaps orphans, a zombie is as gone as it gets.
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && bytes.Contains(stat, []byte(") Z "))
	}, 10*time.Second, 10*time.Millisecond)
}

func TestStartStop(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	s := setup(t, func(c *stack.Config) {
		c.AgentsDir, c.Log = "agents", &said
		c.Env = []string{"TARRY_VARS=A=1,B=2", "TARRY_DEV=false"}
		c.WorkerEnv = []string{"MODEL_KEY=k"}
	})
	require.NoError(t, s.Start(t.Context()))
	require.NoError(t, s.Start(t.Context()), "what runs is left alone")
	agents, err := filepath.Abs("agents")
	require.NoError(t, err)

	worker := environment(t, s.Addr(stack.Worker))
	require.Equal(t, "A=1,B=2", worker["TARRY_VARS"])
	require.Equal(t, "false", worker["TARRY_DEV"], "the caller's setting wins")
	require.Equal(t, "k", worker["MODEL_KEY"])
	require.Equal(t, agents, worker["TARRY_AGENTS_DIR"])
	require.Equal(t, s.Addr(stack.Temporal), worker["TEMPORAL_ADDRESS"])
	require.Equal(t, s.URL(), worker["TARRY_PUBLIC_URL"])
	require.NotContains(t, worker, "HOME", "nothing is inherited")
	server := environment(t, s.Addr(stack.Server))
	require.Equal(t, s.Database(), server["TARRY_DATABASE_URL"])
	require.NotContains(t, server, "TARRY_ADMIN_ADDR")
	require.NotContains(t, server, "MODEL_KEY")
	require.NotContains(t, environment(t, s.Addr(stack.Temporal)), "TARRY_VARS")

	pids := map[stack.Name]int{}
	for _, name := range stack.All() {
		pids[name] = s.Pid(name)
		log, err := os.ReadFile(s.LogFile(name))
		require.NoError(t, err)
		require.Contains(t, string(log), "says hello")
	}
	require.NoError(t, s.Stop())
	for _, name := range stack.All() {
		require.True(t, gone(pids[name]))
		require.Zero(t, s.Pid(name))
		require.False(t, listens(s.Addr(name)))
	}
	require.Less(t, strings.Index(said.String(), "server stopped"), strings.Index(said.String(), "worker stopped"))
	require.Less(t, strings.Index(said.String(), "worker stopped"), strings.Index(said.String(), "temporal stopped"))
	select {
	case err := <-s.Failed():
		require.NoError(t, err, "an end that was asked for is no failure")
	default:
	}
}

func TestKillAndStartAgain(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	require.NoError(t, s.Start(t.Context()))
	before, worker, url := s.Addr(stack.Worker), s.Pid(stack.Worker), s.URL()
	other := s.Pid(stack.Server)
	require.NoError(t, s.Kill(stack.Worker))
	<-s.Done(stack.Worker)
	require.True(t, gone(worker))
	require.Equal(t, other, s.Pid(stack.Server), "the others go on")
	require.NoError(t, s.Start(t.Context(), stack.Worker))
	require.NotEqual(t, worker, s.Pid(stack.Worker))
	require.Equal(t, before, s.Addr(stack.Worker))

	require.NoError(t, s.Kill())
	require.NoError(t, s.Restart(t.Context()))
	require.Equal(t, url, s.URL())
	require.True(t, listens(s.Addr(stack.Server)))
	log, err := os.ReadFile(s.LogFile(stack.Server))
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(log), "says hello"), "logs are continued")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.ErrorContains(t, s.Start(t.Context()), "closed")
}

func TestDoesNotStart(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"broken": "worker ended: exit status 3; the end of ",
		"silent": "worker is not ready after 500ms",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(c *stack.Config) {
				c.Env = []string{"FAKE_WORKER=" + mode}
				if mode == "silent" {
					c.ReadyTimeout = 500 * time.Millisecond
				}
			})
			err := s.Start(t.Context(), stack.Worker)
			require.ErrorContains(t, err, want)
			require.ErrorContains(t, err, "worker says hello")
			require.Zero(t, s.Pid(stack.Worker))
		})
	}
}

func TestInterruptedStart(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *stack.Config) { c.Env = []string{"FAKE_WORKER=silent"} })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for s.Pid(stack.Worker) == 0 {
			runtime.Gosched()
		}
		cancel()
	}()
	require.ErrorIs(t, s.Start(ctx), context.Canceled)
	require.Zero(t, s.Pid(stack.Worker))
	require.NotZero(t, s.Pid(stack.Temporal))
	require.NoError(t, s.Close())
	require.Zero(t, s.Pid(stack.Temporal))
}

func TestUnexpectedEnd(t *testing.T) {
	t.Parallel()
	s := setup(t, nil)
	require.NoError(t, s.Start(t.Context()))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr(stack.Worker)+"/die", nil)
	require.NoError(t, err)
	resp, err := (&http.Client{}).Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	require.ErrorContains(t, <-s.Failed(), "worker ended: exit status 7")
	require.Zero(t, s.Pid(stack.Worker))
}

func TestStubborn(t *testing.T) {
	t.Parallel()
	s := setup(t, func(c *stack.Config) {
		c.Env, c.StopTimeout = []string{"FAKE_SERVER=stubborn"}, 200*time.Millisecond
	})
	require.NoError(t, s.Start(t.Context(), stack.Server))
	require.ErrorContains(t, s.Stop(), "was killed")
	require.Zero(t, s.Pid(stack.Server))
}

func TestGrandchildrenGoToo(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"kill", "stop"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := setup(t, func(c *stack.Config) { c.Env = []string{"FAKE_WORKER=child"} })
			require.NoError(t, s.Start(t.Context(), stack.Worker))
			log, err := os.ReadFile(s.LogFile(stack.Worker))
			require.NoError(t, err)
			_, rest, ok := strings.Cut(string(log), "child ")
			require.True(t, ok)
			pid, err := strconv.Atoi(strings.Fields(rest)[0])
			require.NoError(t, err)
			if how == "kill" {
				require.NoError(t, s.Kill())
			} else {
				require.NoError(t, s.Stop())
			}
			eventuallyGone(t, pid)
		})
	}
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	first := setup(t, nil)
	_, text, err := net.SplitHostPort(first.Addr(stack.Server))
	require.NoError(t, err)
	port, err := strconv.Atoi(text)
	require.NoError(t, err)
	_, err = stack.New(t.Context(), stack.Config{Dir: t.TempDir(), Bin: bin(t), PublicPort: port})
	require.ErrorIs(t, err, stack.ErrPortTaken)
	require.ErrorContains(t, err, ":"+text)
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	_, err := stack.New(t.Context(), stack.Config{})
	require.ErrorContains(t, err, "required")
	_, err = stack.New(t.Context(), stack.Config{Dir: t.TempDir(), Bin: t.TempDir()})
	require.ErrorContains(t, err, "find program devserver")
}
