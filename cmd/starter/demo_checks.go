package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// check is something that has to hold.
type check struct {
	What  string `json:"what"`
	Value string `json:"value"`
	Held  bool   `json:"held"`
	// fact marks a line that is shown and cannot fail.
	fact bool
}

// check notes whether something held; value is what was found, or, where it says all, what was wanted.
func (s *stage) check(what string, held bool, value string) {
	if !held && value == "yes" {
		value = "no"
	}
	s.checks = append(s.checks, check{What: what, Value: value, Held: held})
}

func (s *stage) fact(what, value string) {
	s.checks = append(s.checks, check{What: what, Value: value, Held: true, fact: true})
}

func (s *stage) broken() bool {
	for _, c := range s.checks {
		if !c.Held {
			return true
		}
	}
	return false
}

func (s *stage) checkAnswer() {
	s.check("the run ended well", s.result.exit() == exitDone, s.result.InvocationStatus)
	if !s.options.scripted() {
		s.check("there is an answer", s.result.Answer != "", "yes")
		return
	}
	// The plan of the second round: the reviewer had the first one changed.
	s.check("the answer is the reviewed plan", strings.Contains(s.result.Answer, "3. REL-104 Audit page, 4 days (waits for REL-103)"), "yes")
}

// checkCounts compares what was done with what had to be done.
func (s *stage) checkCounts(ctx context.Context) error {
	models, repeated, err := s.modelCalls()
	if err != nil {
		return err
	}
	if s.options.scripted() {
		s.check("model calls", models == s.result.ModelCalls, count(models))
		s.check("  of these repeated", repeated == 0, count(repeated))
	} else {
		s.fact("model calls", count(s.result.ModelCalls))
	}
	calls := s.mcp.Calls("")
	keys := map[string]bool{}
	again, keyless := 0, 0
	for _, c := range calls {
		switch {
		case c.IdempotencyKey == "":
			keyless++
		case keys[c.IdempotencyKey]:
			again++
		}
		keys[c.IdempotencyKey] = true
	}
	s.check("tool calls at the MCP server", len(calls) > 0 && keyless == 0, count(len(calls)))
	s.check("  of these repeated", again == 0, count(again))
	logins, err := s.api.logins(ctx, true)
	if err != nil {
		return err
	}
	s.check("logins asked for", len(logins) == 1, count(len(logins)))
	codes := s.provider.Counts().TokenOK["authorization_code"]
	s.check("codes exchanged", codes == 1, count(codes))
	return nil
}

// modelCalls counts the lines of the script's journal, and those whose answer stands there twice: an agent's turn of the
// one invocation has one answer.
func (s *stage) modelCalls() (all, repeated int, err error) {
	body, err := os.ReadFile(s.journalFile())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, failed("read journal: %w", err)
	}
	seen := map[string]bool{}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		var record struct {
			Agent, Answer string
			Turn          int
		}
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return 0, 0, failed("read journal: %w", err)
		}
		all++
		key := fmt.Sprintf("%s %d %s", record.Agent, record.Turn, record.Answer)
		if seen[key] {
			repeated++
		}
		seen[key] = true
	}
	return all, repeated, nil
}

func count(n int) string { return strconv.Itoa(n) }

// verdict prints the table and says whether everything held.
func (s *stage) verdict() error {
	if s.json {
		if err := s.printJSON(map[string]any{"checks": s.checks, "ok": !s.broken()}); err != nil {
			return err
		}
	} else if err := s.print("\n%s", s.report()); err != nil {
		return err
	}
	if !s.broken() {
		s.tell("everything held")
		return nil
	}
	var names []string
	for _, c := range s.checks {
		if !c.Held {
			names = append(names, strings.TrimSpace(c.What)+": "+c.Value)
		}
	}
	return failed("did not hold: %s", strings.Join(names, "; "))
}

func (s *stage) report() string {
	width := 0
	for _, c := range s.checks {
		width = max(width, len(c.What))
	}
	var out []string
	for _, c := range s.checks {
		mark := "ok  "
		switch {
		case !c.Held:
			mark = "FAIL"
		case c.fact:
			mark = "    "
		}
		out = append(out, fmt.Sprintf("%s %-*s  %s", mark, width, c.What, c.Value))
	}
	return strings.Join(out, "\n")
}
