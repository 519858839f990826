package main

import (
	"context"
	"regexp"
	"strings"
)

// scenario is one of the suite's, at one revision of the protocol.
type scenario struct {
	revision, name string
	required       bool
}

func (s scenario) String() string { return s.revision + "/" + s.name }

// id is the scenario's name as agents may be called.
func (s scenario) id() string {
	return regexp.MustCompile(`[^A-Za-z0-9]+`).ReplaceAllString(s.name+"_"+s.revision, "_")
}

// asks says that the scenario is about logins or about questions to a person, so that the worker is restarted in it.
func (s scenario) asks() bool { return strings.HasPrefix(s.name, "auth/") }

// oldest is the revision of the back-compat scenarios.
const oldest = "2025-03-26"

// revisions are those that must be conformed to.
func revisions() []string { return []string{"2025-11-25", "2026-07-28"} }

// scenarios asks the suite what the revisions require, and for the back-compat scenarios.
func (s *suite) scenarios(ctx context.Context) ([]scenario, error) {
	var out []scenario
	for _, revision := range revisions() {
		names, err := s.list(ctx, "--requirements", revision)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			out = append(out, scenario{revision, name, true})
		}
	}
	names, err := s.list(ctx, "--client", "--spec-version", oldest)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out = append(out, scenario{oldest, name, false})
	}
	return out, nil
}

func choose(all []scenario, only *regexp.Regexp) []scenario {
	var out []scenario
	for _, s := range all {
		if only.MatchString(s.String()) {
			out = append(out, s)
		}
	}
	return out
}
