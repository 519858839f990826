package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
)

// look is how often the end of an invocation is looked for: seldom enough to cost nothing.
const look = 100 * time.Millisecond

// runner runs sessions and reads their histories.
type runner struct {
	base     string
	http     *http.Client
	temporal client.Client
}

// tarry runs one session over HTTP and returns the histories of its runs.
func (r *runner) tarry(ctx context.Context, s size) ([]*historypb.History, error) {
	user := "/apps/" + s.app() + "/users/user"
	in := map[string]string{"task": "Go.", "mode": "chat"}
	for done := 0; done < s.turns; done += perMessage {
		var started struct{ Session, Invocation string }
		if err := r.call(ctx, http.MethodPost, user+"/runs", in, &started); err != nil {
			return nil, err
		}
		in["session"] = started.Session
		if err := r.done(ctx, user+"/sessions/"+started.Session+"/status", started.Invocation); err != nil {
			return nil, err
		}
	}
	body, err := r.fetch(ctx, http.MethodGet, user+"/sessions/"+in["session"]+"/history", nil)
	if err != nil {
		return nil, err
	}
	newest, err := client.HistoryFromJSON(bytes.NewReader(body), client.HistoryJSONOptions{})
	if err != nil {
		return nil, fmt.Errorf("read history: %w", err)
	}
	return r.chain(ctx, newest)
}

func (r *runner) done(ctx context.Context, path, invocation string) error {
	for {
		var st struct {
			State, Invocation, Error string
			InvocationStatus         string `json:"invocation_status"`
		}
		if err := r.call(ctx, http.MethodGet, path, nil, &st); err != nil {
			return err
		}
		switch {
		case st.Invocation == invocation && st.InvocationStatus == "done":
			return nil
		case st.Error != "" || st.Invocation == invocation && st.InvocationStatus != "running" && st.InvocationStatus != "queued":
			return fmt.Errorf("the run ended as %s %s: %s", st.State, st.InvocationStatus, st.Error)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for a run: %w", ctx.Err())
		case <-time.After(look):
		}
	}
}

// chain returns the histories of all runs, oldest first.
func (r *runner) chain(ctx context.Context, newest *historypb.History) ([]*historypb.History, error) {
	runs := []*historypb.History{newest}
	for {
		if len(runs[len(runs)-1].GetEvents()) == 0 {
			return nil, errors.New("read history: it is empty")
		}
		started := runs[len(runs)-1].GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
		if started.GetContinuedExecutionRunId() == "" {
			slices.Reverse(runs)
			return runs, nil
		}
		before, err := r.history(ctx, started.GetWorkflowId(), started.GetContinuedExecutionRunId())
		if err != nil {
			return nil, err
		}
		runs = append(runs, before)
	}
}

func (r *runner) history(ctx context.Context, id, run string) (*historypb.History, error) {
	out := &historypb.History{}
	events := r.temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		out.Events = append(out.Events, e)
	}
	return out, nil
}

// bare runs the bare workflow and returns its history.
func (r *runner) bare(ctx context.Context, s size, shape shape) ([]*historypb.History, error) {
	run, err := r.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: "bare/" + s.app() + "/" + uuid.NewString(), TaskQueue: bareQueue, WorkflowTaskTimeout: shape.TaskTimeout,
	}, bareWorkflow, bareInput{Turns: s.turns, Shape: shape})
	if err != nil {
		return nil, fmt.Errorf("start bare workflow: %w", err)
	}
	if err := run.Get(ctx, nil); err != nil {
		return nil, fmt.Errorf("bare workflow: %w", err)
	}
	h, err := r.history(ctx, run.GetID(), run.GetRunID())
	return []*historypb.History{h}, err
}

// both measures one session of each; turn about, the other is first.
func (r *runner) both(ctx context.Context, s size, shape shape, bareFirst bool) (tarry, bare session, err error) {
	var a, b []*historypb.History
	if bareFirst {
		if b, err = r.bare(ctx, s, shape); err == nil {
			a, err = r.tarry(ctx, s)
		}
	} else {
		if a, err = r.tarry(ctx, s); err == nil {
			b, err = r.bare(ctx, s, shape)
		}
	}
	if err != nil {
		return tarry, bare, err
	}
	tarry, bare = cut(a), cut(b)
	for _, one := range []session{tarry, bare} {
		if n := len(one.turns) + one.split + one.repeated; n != s.turns {
			return tarry, bare, fmt.Errorf("a session of %d turns has %d in its history", s.turns, n)
		}
	}
	return tarry, bare, nil
}

func (r *runner) call(ctx context.Context, method, path string, in, out any) error {
	body, err := r.fetch(ctx, method, path, in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, out); err != nil {
		return fmt.Errorf("read answer of %s: %w", path, err)
	}
	return nil
}

func (r *runner) fetch(ctx context.Context, method, path string, in any) ([]byte, error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := r.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask the service: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return nil, fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, bytes.TrimSpace(text))
	}
	return text, nil
}
