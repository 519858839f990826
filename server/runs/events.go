package runs

import (
	"encoding/json"
	"net/http"
	"strconv"

	"tarry/server/stream"
	"tarry/server/web"
	"tarry/session"
)

// end is the last frame of a stream.
type end struct {
	State      string `json:"state"`
	Invocation string `json:"invocation"`
}

// events answers a session's events: as a JSON list, which goes on where its Link header says if it is long, or with follow=true as a stream that goes on until the session is
// closed. until=end stops with the invocation (the current one, or the one that the query names), until=wait also where it
// waits for a person; partial=true shows pieces of answers while models give them, where the run was started with streaming.
func (h *Handler) events(w http.ResponseWriter, r *http.Request) {
	row, err := h.session(r)
	if err != nil {
		web.Refuse(w, r, h.Logger, err)
		return
	}
	o, err := h.options(r)
	if err != nil {
		web.Refuse(w, r, h.Logger, err)
		return
	}
	if web.Truth(r, "follow") {
		h.stream(w, r, row, o)
		return
	}
	view, err := h.Log.Timeline(r.Context(), row.Owner, row.ID, o.After)
	if err != nil {
		web.Refuse(w, r, h.Logger, noSession(err, row.ID))
		return
	}
	most, err := web.Limit(r.URL.Query(), web.MostRows)
	if err != nil {
		web.Refuse(w, r, h.Logger, err)
		return
	}
	out, size, last := []json.RawMessage{}, 0, int64(0)
	for _, e := range view {
		if o.Invocation != "" && e.InvocationID != o.Invocation {
			continue
		}
		if len(out) == most || len(out) > 0 && size+len(e.Body) > maxPage {
			w.Header().Set("Link", nextEvents(r, last)) // RFC 8288: the list itself has no room for a cursor
			break
		}
		out, size, last = append(out, e.Body), size+len(e.Body), e.Seq
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, out)
}

// maxPage bounds the events of one answer, in bytes; one event is sent whatever its size.
const maxPage = 16 << 20

func nextEvents(r *http.Request, after int64) string {
	query := r.URL.Query()
	query.Set("after", strconv.FormatInt(after, 10))
	return "<" + r.URL.EscapedPath() + "?" + query.Encode() + `>; rel="next"`
}

func (h *Handler) options(r *http.Request) (stream.Options, error) {
	q := r.URL.Query()
	o := stream.Options{Invocation: q.Get("invocation"), Requests: h.Requests, Poll: h.Poll, Every: h.Heartbeat}
	if after := stream.LastEventID(r, "after"); after != "" {
		at, err := stream.ParseCursor(after)
		if err != nil {
			return o, web.Refusal(http.StatusBadRequest, "after, starting_after and Last-Event-ID are the id of a frame of this session's streams, such as 57")
		}
		o.After, o.AfterPartial = at.Seq, at.Partial
	}
	switch q.Get("until") {
	case "", "closed":
		o.Until = stream.UntilClosed
	case "end":
		o.Until = stream.UntilEnd
	case "wait":
		o.Until = stream.UntilPause
	default:
		return o, web.Refusal(http.StatusBadRequest, "until is none of closed, end, wait")
	}
	return o, nil
}

func (h *Handler) stream(w http.ResponseWriter, r *http.Request, row session.Session, o stream.Options) {
	out := stream.NewWriter(w, http.StatusOK)
	o.Heartbeat = func() error { return out.Comment("the run goes on") }
	if err := out.Flush(); err != nil {
		return
	}
	if web.Truth(r, "partial") {
		o.Partials, o.EmitPartial = h.Partials, out.Partial
	}
	why, err := stream.Follow(r.Context(), h.Log, row.Owner, row.ID, o, out.Event)
	if err == nil && why != stream.Gone {
		row, err = h.Log.Session(r.Context(), row.Owner, row.ID)
	}
	switch {
	case r.Context().Err() != nil:
		return
	case err != nil:
		h.Logger.WarnContext(r.Context(), "stream broke off", "session", row.ID, "request_id", web.RequestID(r.Context()), "err", err)
		return // without an end: the client comes back with Last-Event-ID
	}
	last := end{State: h.runOf(row, nil).State, Invocation: row.Invocation}
	switch why {
	case stream.Gone:
		last.State = "deleted"
	case stream.Waiting:
		last.State = row.Status
	case stream.Ended, stream.Closed:
	}
	if o.Invocation != "" {
		last.Invocation = o.Invocation
	}
	if err := out.Data("end", last); err != nil {
		h.Logger.DebugContext(r.Context(), "client went away", "err", err)
	}
}
