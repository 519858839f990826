package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// report collects how scenarios ended. It is safe for concurrent use.
type report struct {
	begun time.Time

	mu       sync.Mutex
	expected []scenario
	passed   map[scenario]bool
}

// expect names the scenarios that have to run: one that does not counts as failed.
func (r *report) expect(scenarios []scenario) {
	r.expected, r.passed = scenarios, map[scenario]bool{}
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
	fmt.Printf("%s  +%03ds  %s  %s %s (%.1f s)\n", time.Now().Format(time.TimeOnly), int(time.Since(r.begun).Seconds()), word,
		s.revision, s.name, took.Seconds())
	if !passed {
		for line := range strings.Lines(why(output)) {
			fmt.Print("    " + line)
		}
		fmt.Println()
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

// verdict prints what has passed and names what has not.
func (r *report) verdict() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed []string
	count := map[bool][2]int{}
	for _, s := range r.expected {
		n := count[s.required]
		n[1]++
		if r.passed[s] {
			n[0]++
		} else {
			failed = append(failed, s.String())
		}
		count[s.required] = n
	}
	for _, name := range failed {
		fmt.Println("not passed: " + name)
	}
	fmt.Printf("back-compat: %d of %d scenarios passed\n", count[false][0], count[false][1])
	fmt.Printf("conformance: %d of %d required scenarios passed\n", count[true][0], count[true][1])
	if len(failed) > 0 {
		return fmt.Errorf("%d scenarios did not pass", len(failed))
	}
	return nil
}
