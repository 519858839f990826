package main

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"tarry/server/runs"
)

const (
	kindQuestion = "question"
	kindResult   = "result"
)

func (a *app) answerCommand() *cobra.Command {
	var name string
	var decline, interim bool
	cmd := &cobra.Command{
		Use:   "answer SESSION [REQUEST] VALUE",
		Short: "Answer a tool that asks, or say what came of a long-running call",
		Long: `Answers a tool that asks for something, or gives a long-running call its result. VALUE is a text, or JSON where that is
asked for. REQUEST says which, where several wait; starter show names them.`,
		Args: cobra.RangeArgs(1, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			session, request, value, err := split(args, decline)
			if err != nil {
				return err
			}
			c, st, err := a.find(cmd.Context(), name, session)
			if err != nil {
				return err
			}
			w, err := toAnswer(st, request)
			if err != nil {
				return err
			}
			if interim && w.Kind != kindResult {
				return unusable("--interim is for results of long-running calls; %s of %s asks for an answer", w.Tool, w.Agent)
			}
			out, err := c.answer(cmd.Context(), st, w, value, decline, interim)
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(out)
			}
			a.say("%s; `starter show %s --follow` shows how the run goes on", done(decline, interim), st.Session)
			return nil
		},
	}
	cmd.Flags().BoolVar(&decline, "decline", false, "say that there will be no answer or result; without VALUE")
	cmd.Flags().BoolVar(&interim, "interim", false, "the result is not the last: the call goes on waiting")
	addAppFlag(cmd, &name)
	return cmd
}

func done(decline, interim bool) string {
	switch {
	case decline:
		return "declined"
	case interim:
		return "noted, and the call waits on"
	}
	return "answered"
}

// split reads the arguments: the value is the last, and there is none where nothing is answered.
func split(args []string, decline bool) (session, request, value string, err error) {
	rest := args[1:]
	switch {
	case decline && len(rest) > 1:
		return "", "", "", unusable("--decline takes no VALUE")
	case !decline && len(rest) == 0:
		return "", "", "", unusable("VALUE is missing: say what the answer is, or --decline")
	case !decline:
		value, rest = rest[len(rest)-1], rest[:len(rest)-1]
	}
	if len(rest) == 1 {
		request = rest[0]
	}
	return args[0], request, value, nil
}

// toAnswer chooses what is answered: an answer must not go to another tool than the one that was meant.
func toAnswer(st *statusInfo, request string) (*runs.Waiting, error) {
	var found []*runs.Waiting
	var ids []string
	for i := range st.WaitingFor {
		w := &st.WaitingFor[i]
		if (w.Kind == kindQuestion || w.Kind == kindResult) && (request == "" || w.Request == request) {
			found, ids = append(found, w), append(ids, w.Request+" ("+w.Tool+": "+brief(w.Message+string(w.Arguments))+")")
		}
	}
	switch {
	case len(found) == 0 && request != "":
		return nil, unusable("nothing of session %s waits for an answer under the request %q", st.Session, request)
	case len(found) == 0:
		return nil, unusable("nothing of session %s waits for an answer", st.Session)
	case len(found) > 1:
		return nil, unusable("session %s waits for several answers; name one: %s", st.Session, strings.Join(ids, " or "))
	}
	return found[0], nil
}

// jsonOf is a value as JSON: what it says, or a text. A question's answer is left to the server, which knows what is asked.
func jsonOf(value string, parse bool) (json.RawMessage, error) {
	if parse && json.Valid([]byte(value)) {
		return json.RawMessage(value), nil
	}
	body, err := json.Marshal(value)
	if err != nil {
		return nil, failed("encode answer: %w", err)
	}
	return body, nil
}
