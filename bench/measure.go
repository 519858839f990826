package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/client"

	"tarry/internal/stack"
)

// errCounts says that a turn costs more history than it may, which has been printed.
var errCounts = errors.New("a turn costs more history than it may")

// measure runs everything, prints it and writes the file.
func measure(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "tarry-bench-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() {
		if o.keep {
			say("databases and logs are in %s", dir)
		} else {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	svc, err := newService(ctx, o, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, svc.Close()) }()
	all, err := svc.measure(ctx, o.sizes)
	if err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b pooled) int { return a.turns - b.turns })
	fmt.Printf("\n%s/%s, %d processors, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	if err := table(os.Stdout, all); err != nil {
		return err
	}
	var out results
	for _, p := range all {
		out.Turns = append(out.Turns, p.result())
	}
	fmt.Println()
	counts := tell(os.Stdout, judge(out.Turns))
	if o.out != "" {
		if err := write(o.out, out); err != nil {
			return err
		}
		say("results are in %s", o.out)
	}
	if !counts {
		return errCounts
	}
	return nil
}

// service is Tarry on this machine, with the benchmark's worker.
type service struct {
	*stack.Stack
	dir, bin string
}

func newService(ctx context.Context, o options, dir string) (*service, error) {
	s := &service{dir: dir, bin: filepath.Join(dir, "bin")}
	if err := s.link(o.bin); err != nil {
		return nil, err
	}
	env := []string{"TARRY_SCRIPTS_DIR=" + filepath.Join(dir, "scripts"), envSizes + "=" + sizeList(o.sizes)}
	if o.profile != "" {
		path, err := filepath.Abs(o.profile)
		if err != nil {
			return nil, fmt.Errorf("profile: %w", err)
		}
		env = append(env, envProfile+"="+path)
	}
	if o.idempotent {
		env = append(env, envIdempotent+"=yes")
	}
	say("starting dev server, worker and server")
	var err error
	s.Stack, err = stack.New(ctx, stack.Config{
		Dir: filepath.Join(dir, "data"), Bin: s.bin, Base: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}, WorkerEnv: env,
	})
	if err != nil {
		return nil, fmt.Errorf("prepare service: %w", err)
	}
	if err := s.Start(ctx, stack.All()...); err != nil {
		return nil, errors.Join(fmt.Errorf("start service: %w", err), s.Close())
	}
	return s, nil
}

// link makes a directory of programs in which this one is the worker.
func (s *service) link(bin string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if bin, err = filepath.Abs(bin); err != nil {
		return fmt.Errorf("find %s: %w", bin, err)
	}
	if err := os.MkdirAll(s.bin, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	for name, program := range map[string]string{
		"devserver": filepath.Join(bin, "devserver"), "server": filepath.Join(bin, "server"), string(roleWorker): self,
	} {
		if err := os.Symlink(program, filepath.Join(s.bin, name)); err != nil {
			return fmt.Errorf("link programs: %w", err)
		}
	}
	return nil
}

func sizeList(sizes []size) string {
	var out []string
	for _, s := range sizes {
		out = append(out, fmt.Sprintf("%dx%d", s.turns, s.rounds))
	}
	return strings.Join(out, ",")
}

// warmUp is how many turns each side plays before those that count, in sessions of the first length: databases are slower while
// their logs still grow, which they do until these are written over, and processes while their statements are compiled. Not all that
// slows is the same for both sides.
const warmUp = 500

// measure makes one session of the first length to learn the shape of a turn, some to warm up, and then all that count.
func (s *service) measure(ctx context.Context, sizes []size) ([]pooled, error) {
	temporal, err := client.DialContext(ctx, client.Options{HostPort: s.Addr(stack.Temporal)})
	if err != nil {
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	defer temporal.Close()
	r := &runner{base: s.URL(), http: &http.Client{Transport: &http.Transport{}}, temporal: temporal}
	warm, err := r.tarry(ctx, sizes[0])
	if err != nil {
		return nil, err
	}
	shape := shapeOf(warm[len(warm)-1])
	shape.Summary = agentName
	stop, err := s.startBare(ctx, shape)
	if err != nil {
		return nil, err
	}
	defer stop()
	sessions := max(1, warmUp/sizes[0].turns)
	say("warming up: %d sessions of %d turns each", sessions, sizes[0].turns)
	for round := range sessions {
		if _, _, err := r.both(ctx, sizes[0], shape, round%2 == 1); err != nil {
			return nil, err
		}
	}
	var out []pooled
	for _, size := range sizes {
		p := pooled{size: size, before: load()}
		for round := range size.rounds {
			tarry, bare, err := r.both(ctx, size, shape, round%2 == 1)
			if err != nil {
				return nil, err
			}
			say("%d turns, round %d of %d: step %.2f ms, bare %.2f ms", size.turns, round+1, size.rounds, ms(tarry.quantile(half, step)), ms(bare.quantile(half, step)))
			p.tarry.pool(tarry)
			p.bare.pool(bare)
		}
		p.after = load()
		out = append(out, p)
	}
	return out, nil
}

// startBare starts the bare workflow's worker.
func (s *service) startBare(ctx context.Context, shape shape) (stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	log, err := os.Create(filepath.Join(s.dir, "bare.log"))
	if err != nil {
		return nil, fmt.Errorf("log of the bare worker: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, string(roleBare), s.Addr(stack.Temporal), shape.ModelType+","+shape.ToolType)
	cmd.Stdout, cmd.Stderr = log, log
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start bare worker: %w", err), log.Close())
	}
	return func() {
		_ = in.Close()
		_ = cmd.Wait()
		_ = log.Close()
	}, nil
}

// load is the load average of the last minute, where the system tells it.
func load() string {
	body, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(body), " ")
	return one
}

func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}
