package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// progress shows events to a person, a line each.
type progress struct {
	say func(format string, args ...any)
}

func (p *progress) event(e *event) {
	if e.Partial {
		return
	}
	if ask := e.asks(); ask != nil {
		link, input := ask.link()
		what := "needs a login"
		if input {
			what = "cannot go on without you: a tool's server asks for something"
		}
		p.say("%s %s. Open this link; the run waits as long as it takes:\n  %s", e.Author, what, link)
		return
	}
	if call := e.approval(); call != nil {
		p.say("%s wants to call %s %s and needs your approval: starter approve SESSION, or --reject. The run waits as long as it takes", e.Author, call.Name, brief(string(call.Args)))
		return
	}
	if question := e.question(); question != "" {
		p.say("%s asks: %s\n  answer with: starter answer SESSION VALUE. The run waits as long as it takes", e.Author, brief(question))
		return
	}
	for _, line := range lines(e) {
		p.say("%s", line)
	}
}

// lines says in short what an event is; a person's own words are left out.
func lines(e *event) []string {
	var out []string
	if e.ErrorMessage != "" || e.ErrorCode != "" {
		out = append(out, fmt.Sprintf("%s: %s %s", e.Author, e.ErrorCode, brief(e.ErrorMessage)))
	}
	if e.Author == "user" {
		return out
	}
	for _, part := range e.Content.Parts {
		switch {
		case part.FunctionCall != nil:
			more := ""
			if slices.Contains(e.LongRunning, part.FunctionCall.ID) {
				more = ", which takes long; its result comes from outside (starter answer)"
			}
			out = append(out, fmt.Sprintf("%s calls %s %s%s", e.Author, part.FunctionCall.Name, brief(string(part.FunctionCall.Args)), more))
		case part.FunctionResponse != nil:
			how := "answers"
			if part.FunctionResponse.WillContinue {
				how = "goes on"
			}
			if text, ok := part.FunctionResponse.Response["error"].(string); ok {
				how = "fails: " + brief(text)
			}
			out = append(out, part.FunctionResponse.Name+" "+how)
		case part.Text != "" && !part.Thought:
			out = append(out, fmt.Sprintf("%s: %s", e.Author, brief(part.Text)))
		}
	}
	return out
}

const briefRunes = 100

// brief makes one short line of a text, without control characters: it comes from a model or a tool and goes to a
// terminal.
func brief(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if runes := []rune(text); len(runes) > briefRunes {
		return string(runes[:briefRunes-1]) + "…"
	}
	return text
}
