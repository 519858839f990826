package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
)

// recorder notes the inputs with which the replayed code schedules activities, in order.
type recorder struct {
	interceptor.WorkerInterceptorBase
	mu    sync.Mutex
	calls []scheduled
}

type scheduled struct {
	activity string
	input    []byte
	err      error
}

// InterceptWorkflow implements interceptor.WorkerInterceptor.
func (r *recorder) InterceptWorkflow(_ workflow.Context, next interceptor.WorkflowInboundInterceptor) interceptor.WorkflowInboundInterceptor {
	in := &inbound{recorder: r}
	in.Next = next
	return in
}

type inbound struct {
	interceptor.WorkflowInboundInterceptorBase
	recorder *recorder
}

// Init implements interceptor.WorkflowInboundInterceptor.
func (i *inbound) Init(next interceptor.WorkflowOutboundInterceptor) error {
	out := &outbound{recorder: i.recorder}
	out.Next = next
	return i.Next.Init(out)
}

type outbound struct {
	interceptor.WorkflowOutboundInterceptorBase
	recorder *recorder
}

// ExecuteActivity implements interceptor.WorkflowOutboundInterceptor.
func (o *outbound) ExecuteActivity(ctx workflow.Context, name string, args ...any) workflow.Future {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(args...)
	s := scheduled{activity: name, err: err}
	for _, p := range payloads.GetPayloads() {
		s.input = append(append(s.input, p.GetData()...), '\n')
	}
	o.recorder.mu.Lock()
	o.recorder.calls = append(o.recorder.calls, s)
	o.recorder.mu.Unlock()
	return o.Next.ExecuteActivity(ctx, name, args...)
}

// compare matches what the code scheduled with what the history says was scheduled, by activity id, which counts up.
func (r *recorder) compare(h *historypb.History) (int, error) {
	type recorded struct {
		id, event int64
		activity  string
		input     []byte
	}
	var history []recorded
	for _, e := range h.GetEvents() {
		a := e.GetActivityTaskScheduledEventAttributes()
		if a == nil {
			continue
		}
		id, err := strconv.ParseInt(a.GetActivityId(), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: event %d has activity id %q, which is not the SDK's", ErrHistory, e.GetEventId(), a.GetActivityId())
		}
		item := recorded{id: id, event: e.GetEventId(), activity: a.GetActivityType().GetName()}
		for _, p := range a.GetInput().GetPayloads() {
			item.input = append(append(item.input, p.GetData()...), '\n')
		}
		history = append(history, item)
	}
	slices.SortFunc(history, func(a, b recorded) int { return cmp.Compare(a.id, b.id) })
	for i, want := range history {
		if i >= len(r.calls) {
			return i, fmt.Errorf("%w: event %d schedules %s, which the code does not", ErrMismatch, want.event, want.activity)
		}
		got := r.calls[i]
		if got.activity != want.activity || got.err != nil || !bytes.Equal(got.input, want.input) {
			return i, fmt.Errorf("%w: event %d schedules %s with input %s, the code %s with %s",
				ErrMismatch, want.event, want.activity, bytes.TrimSpace(want.input), got.activity, bytes.TrimSpace(got.input))
		}
	}
	return len(history), nil
}
