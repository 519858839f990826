package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"tarry/wire"
)

// Redact returns copies of histories that replay as they do and can be kept as fixtures: ids of sessions, users, runs,
// events, calls, requests and logins are replaced, the same by the same in all of them; names of hosts and processes,
// messages of failures, headers, memos, summaries and foreign search attributes are gone; the first begins at the start of
// the year 2000, and every other time keeps its distance. Names of the app, its agents, toolsets and tools stay, and so does
// the hash of the definition. The same histories make the same copies.
//
// Whatever is not known to be a name is replaced, texts among what a custom agent reads of state and of tools' results
// included, and keys there that are no identifiers; numbers stay. Where one decides by such a text the copy does not replay,
// unless [Redaction] keeps them.
func Redact(histories ...*historypb.History) ([]*historypb.History, error) {
	return Redaction{}.Redact(histories...)
}

// Redaction is what [Redact] does, with choices. The zero value is Redact's.
type Redaction struct {
	// KeepValues leaves what custom agents read as it is: it is content, and they decide by it.
	KeepValues bool
}

// Redact is [Redact] with choices.
func (o Redaction) Redact(histories ...*historypb.History) ([]*historypb.History, error) {
	if len(histories) == 0 {
		return nil, nil
	}
	r := &redactor{Redaction: o, seen: map[string]string{}}
	for _, h := range histories {
		if _, _, err := started(h); err != nil {
			return nil, err
		}
		if at := h.GetEvents()[0].GetEventTime().AsTime(); r.start.IsZero() || at.Before(r.start) {
			r.start = at
		}
	}
	r.collecting = true
	if _, err := r.all(histories); err != nil {
		return nil, err
	}
	r.assign()
	r.collecting = false
	return r.all(histories)
}

// redactor replaces in two passes: the ids are collected first, so that their order among each other can be kept.
type redactor struct {
	Redaction
	collecting bool
	seen       map[string]string // what was found → what takes its place
	start      time.Time         // of the earliest history
}

func (r *redactor) all(histories []*historypb.History) (out []*historypb.History, err error) {
	for _, h := range histories {
		redacted, ok := proto.Clone(h).(*historypb.History)
		if !ok {
			return nil, errors.New("redact: not a history")
		}
		for _, e := range redacted.GetEvents() {
			e.UserMetadata, e.Links, e.Principal = nil, nil, nil
			if err := r.message(e.ProtoReflect()); err != nil {
				return nil, fmt.Errorf("redact event %d: %w", e.GetEventId(), err)
			}
		}
		out = append(out, redacted)
	}
	return out, nil
}

// message redacts all fields of a message. Those that are neither names nor ids are emptied.
func (r *redactor) message(m protoreflect.Message) (err error) {
	switch special := m.Interface().(type) {
	case *timestamppb.Timestamp:
		r.timestamp(special)
		return nil
	case *commonpb.Payload:
		return r.payload(special)
	case *commonpb.SearchAttributes:
		attributes(special)
		return nil
	case *commonpb.Header, *commonpb.Memo, *sdkpb.UserMetadata:
		proto.Reset(special)
		return nil
	case *failurepb.Failure:
		failure(special)
	case *historypb.MarkerRecordedEventAttributes:
		if special.GetMarkerName() == markerVersion {
			return nil // a change id and a number, both of the code
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		err = r.field(m, field, value)
		return err == nil
	})
	return err
}

func (r *redactor) field(m protoreflect.Message, field protoreflect.FieldDescriptor, value protoreflect.Value) error {
	switch {
	case field.IsMap():
		if field.MapValue().Kind() != protoreflect.MessageKind {
			m.Clear(field)
			return nil
		}
		var err error
		value.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
			err = r.message(v.Message())
			return err == nil
		})
		return err
	case field.Kind() == protoreflect.MessageKind && field.IsList():
		for i := range value.List().Len() {
			if err := r.message(value.List().Get(i).Message()); err != nil {
				return err
			}
		}
	case field.Kind() == protoreflect.MessageKind:
		return r.message(value.Message())
	case field.Kind() == protoreflect.BytesKind, field.Kind() == protoreflect.StringKind && field.IsList() && !kept(field):
		m.Clear(field)
	case field.Kind() == protoreflect.StringKind && !field.IsList():
		m.Set(field, protoreflect.ValueOfString(r.text(m, field, value.String())))
	}
	return nil
}

// kept are the fields that hold names which the code or Temporal's SDK made.
func kept(field protoreflect.FieldDescriptor) bool {
	return slices.Contains([]string{
		"activity_id", "timer_id", "marker_name", "signal_name", "encoded_attributes", "type", "non_retryable_error_types", "sdk_name", "sdk_version",
	}, string(field.Name()))
}

// text returns what takes the place of a string field.
func (r *redactor) text(m protoreflect.Message, field protoreflect.FieldDescriptor, text string) string {
	name := string(field.Name())
	switch m.Interface().(type) {
	case *commonpb.WorkflowType, *commonpb.ActivityType:
		return text
	}
	switch {
	case kept(field):
		return text
	case field.Parent().Name() == "TaskQueue":
		return taskQueue(m, name)
	case name == "workflow_id", strings.HasSuffix(name, "run_id"):
		return r.id(text)
	default:
		return ""
	}
}

// taskQueue keeps no name of a worker's host: that is what sticky queues are called by.
func taskQueue(m protoreflect.Message, name string) string {
	kind := m.Get(m.Descriptor().Fields().ByName("kind")).Enum()
	if name == "name" && kind == protoreflect.EnumNumber(enums.TASK_QUEUE_KIND_STICKY) {
		return "sticky"
	}
	return wire.TaskQueue
}

// epoch is where the redacted time begins.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// moved keeps the distance of a time to the start. What is before all runs, as the zero time, is no time.
func (r *redactor) moved(at time.Time) time.Time {
	if at.Year() < epoch().Year() {
		return at
	}
	return epoch().Add(at.Sub(r.start)).UTC()
}

func (r *redactor) timestamp(t *timestamppb.Timestamp) {
	if r.collecting {
		return
	}
	moved := timestamppb.New(r.moved(t.AsTime()))
	t.Seconds, t.Nanos = moved.GetSeconds(), moved.GetNanos()
}

// attributes leaves the search attributes that Tarry and the SDK set.
func attributes(a *commonpb.SearchAttributes) {
	for name := range a.GetIndexedFields() {
		if !slices.Contains([]string{wire.AttributeApp, wire.AttributeAgent, wire.AttributeStatus, changeVersion}, name) {
			delete(a.IndexedFields, name)
		}
	}
}

// failure keeps the kinds of failures, by which code decides, and nothing that was said.
func failure(f *failurepb.Failure) {
	f.Message, f.StackTrace, f.Source, f.EncodedAttributes = "", "", "", nil
	if a := f.GetApplicationFailureInfo(); a != nil {
		a.Details = nil
	}
	if a := f.GetCanceledFailureInfo(); a != nil {
		a.Details = nil
	}
	if a := f.GetTimeoutFailureInfo(); a != nil {
		a.LastHeartbeatDetails = nil
	}
}
