package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// finishPatience is for real models; the script takes seconds.
const finishPatience = 10 * time.Minute

// finish is scene 6: the loop ends, and what happened is counted.
func (s *stage) finish(ctx context.Context) error {
	s.scene("6. The run goes on to its end")
	limited, cancel := context.WithTimeout(ctx, finishPatience)
	defer cancel()
	t := s.target
	for s.result == nil {
		complete, err := s.api.stream(limited, t.app, t.session, t.invocation, s.last, func(e entry) error {
			s.show(e)
			return nil
		})
		switch {
		case err != nil:
			return err
		case complete:
			if s.result, err = s.api.status(limited, t.app, t.session); err != nil {
				return err
			}
		}
	}
	s.tell("the run is over: %s", s.result.InvocationStatus)
	if !s.json {
		_ = s.print("\n%s", s.result.Answer) // the verdict's write says it
	}
	history, err := s.closedHistory(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.dir, "history.json"), history, 0o600); err != nil {
		return failed("keep history: %w", err)
	}
	s.checkAnswer()
	if err := s.checkCounts(ctx); err != nil {
		return err
	}
	if err := s.checkHistory(ctx, history); err != nil {
		return err
	}
	return s.checkSecrets(history)
}

// closedHistory waits for the workflow's last event: the store knows of the end a moment before Temporal does.
func (s *stage) closedHistory(ctx context.Context) (body []byte, err error) {
	err = until(ctx, patience, "the workflow ends", func() (bool, error) {
		body, err = s.api.history(ctx, s.target.app, s.target.session, "")
		if err != nil {
			return false, err
		}
		h, err := readHistory(body)
		if err != nil {
			return false, err
		}
		events := h.GetEvents()
		return len(events) > 0 && events[len(events)-1].GetWorkflowExecutionCompletedEventAttributes() != nil, nil
	})
	if err != nil {
		return nil, fmt.Errorf("export history: %w", err)
	}
	return body, nil
}
