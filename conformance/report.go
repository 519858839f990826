package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// report collects how scenarios ended. It is safe for concurrent use.
type report struct {
	out io.Writer

	mu       sync.Mutex
	expected []scenario
	passed   map[scenario]bool
	done     int
}

// say prints a line of progress.
func say(out io.Writer, format string, args ...any) {
	fmt.Fprintf(out, "%s  %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// newReport counts those scenarios: one that does not run has failed.
func newReport(out io.Writer, expected []scenario) *report {
	return &report{out: out, expected: expected, passed: map[scenario]bool{}}
}

// add prints how a scenario ended.
func (r *report) add(s scenario, passed bool, took time.Duration, output string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.passed[s] = passed
	word := "passed"
	if !passed {
		word = "FAILED"
	}
	r.done++
	say(r.out, "%s  %2d/%d  %s %s (%.1f s)", word, r.done, len(r.expected), s.revision, s.name, took.Seconds())
	if !passed {
		for line := range strings.Lines(why(output)) {
			fmt.Fprint(r.out, "    "+line)
		}
		fmt.Fprintln(r.out)
	}
}

// why is what the suite says about a failure: the client's output and the checks that failed.
func why(output string) string {
	for _, heading := range []string{"\nClient exited with", "\nTest Results:"} {
		if i := strings.Index(output, heading); i >= 0 {
			from, checks, _ := strings.Cut(output[i+1:], "\nChecks:\n")
			if i := strings.Index(checks, "\nTest Results:"); i >= 0 {
				from += checks[i:]
			}
			return from
		}
	}
	return output[max(0, len(output)-2000):]
}

// good says that all scenarios have passed.
func (r *report) good() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.expected {
		if !r.passed[s] {
			return false
		}
	}
	return true
}

// verdict prints what has passed and names what has not.
func (r *report) verdict() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var required, compat tally
	for _, s := range r.expected {
		t := &compat
		if s.required {
			t = &required
		}
		t.all++
		if r.passed[s] {
			t.passed++
		} else {
			fmt.Fprintln(r.out, "not passed: "+s.String())
		}
	}
	fmt.Fprintf(r.out, "back-compat: %d of %d scenarios passed\n", compat.passed, compat.all)
	fmt.Fprintf(r.out, "conformance: %d of %d required scenarios passed\n", required.passed, required.all)
}

type tally struct{ passed, all int }
