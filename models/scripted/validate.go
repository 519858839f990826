package scripted

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ScriptError is one mistake in a script.
type ScriptError struct {
	// File and Line are where; Line is 0 for a script that was not read from a file.
	File string
	Line int
	// Field is the place in the script, for example "agents[0].steps[2].calls[0].name".
	Field string
	// Problem says what is wrong and Mend what to write instead.
	Problem string
	Mend    string
}

// Error implements error.
func (e *ScriptError) Error() string {
	where := e.File
	if where == "" {
		where = "script"
	}
	if e.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, e.Line)
	}
	if e.Field != "" {
		where += ": " + e.Field
	}
	out := where + ": " + e.Problem
	if e.Mend != "" {
		out += "; " + e.Mend
	}
	return out
}

// checker collects the mistakes of a script. lines knows where a field stands, if the script came from a file.
type checker struct {
	file   string
	lines  map[string]int
	faults []error
}

func (c *checker) fault(field, problem, mend string) {
	c.faults = append(c.faults, &ScriptError{
		File: c.file, Line: c.line(field), Field: field, Problem: problem, Mend: mend,
	})
}

// line falls back to the nearest enclosing field that stands in the file.
func (c *checker) line(field string) int {
	for {
		if line, ok := c.lines[field]; ok {
			return line
		}
		cut := strings.LastIndexAny(field, ".[")
		if cut < 0 {
			return c.lines[""]
		}
		field = field[:cut]
	}
}

func (s Script) validate() error {
	c := &checker{file: s.Name}
	c.script(s)
	return errors.Join(c.faults...)
}

func (c *checker) script(s Script) {
	if len(s.Agents) == 0 {
		c.fault("agents", "there is no agent", "add a list of entries with agent and steps")
	}
	seen := map[string]bool{}
	for i, a := range s.Agents {
		at := fmt.Sprintf("agents[%d]", i)
		switch {
		case a.Agent == "":
			c.fault(at+".agent", "is missing", `write the agent's name, or "*" for any`)
		case seen[a.Agent]:
			c.fault(at+".agent", fmt.Sprintf("%q has an entry already", a.Agent), "put all its steps into one entry")
		}
		seen[a.Agent] = true
		if len(a.Steps) == 0 {
			c.fault(at+".steps", "there is no step", "add a step with text, calls or error")
		}
		for j, step := range a.Steps {
			c.step(fmt.Sprintf("%s.steps[%d]", at, j), step)
		}
	}
}

func (c *checker) step(at string, s Step) {
	answers := s.Text != "" || s.Thought != "" || len(s.Calls) > 0
	switch {
	case s.Error != nil && answers:
		c.fault(at, "has an error and an answer", "keep one of them")
	case s.Error == nil && !answers:
		c.fault(at, "answers nothing", "add text, calls or error")
	}
	c.placeholders(at+".text", s.Text)
	c.placeholders(at+".thought", s.Thought)
	for i, call := range s.Calls {
		in := fmt.Sprintf("%s.calls[%d]", at, i)
		if call.Name == "" {
			c.fault(in+".name", "is missing", "write the name of the function")
		}
		c.placeholders(in+".args", call.Args)
	}
	if s.When != nil && s.When.Turn < 0 {
		c.fault(at+".when.turn", "is negative", "turns count from 1")
	}
	for field, d := range map[string]time.Duration{"delay": s.Delay, "pace": s.Pace} {
		if d < 0 {
			c.fault(at+"."+field, "is negative", `write a duration such as "200ms"`)
		}
	}
	if u := s.Usage; u != nil && (u.Prompt < 0 || u.Output < 0 || u.Thoughts < 0) {
		c.fault(at+".usage", "is negative", "write numbers of tokens from 0")
	}
	if f := s.Error; f != nil {
		if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
			c.fault(at+".error.status", fmt.Sprintf("%d is no error", f.Status), "write 400 to 599, or 0 for a network failure")
		}
		if f.RetryAfter < 0 {
			c.fault(at+".error.retry_after", "is negative", `write a duration such as "7s"`)
		}
	}
}

func (c *checker) placeholders(at string, value any) {
	switch value := value.(type) {
	case string:
		for _, found := range newFiller(nil).pattern.FindAllStringSubmatch(value, -1) {
			if !knownPlaceholder(found[1]) {
				c.fault(at, found[0]+" is unknown",
					"write {{last_response.path}}, {{response.<tool>.path}} or {{user_text}}")
			}
		}
	case map[string]any:
		for _, v := range value {
			c.placeholders(at, v)
		}
	case []any:
		for _, v := range value {
			c.placeholders(at, v)
		}
	}
}

func knownPlaceholder(name string) bool {
	return name == "user_text" || name == "last_response" || strings.HasPrefix(name, "last_response.") ||
		strings.HasPrefix(name, "response.")
}
