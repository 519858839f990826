package adk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/auth"
	"tarry/session"
)

// withReplies are the events of a session as ADK has them: each question to a person that has ended is followed by a reply of
// its user. Clients tell by that which questions are open; ADK's web UI offers the others again. Of what people reply nothing is
// kept but what came of it, so these events are made up when they are read, and agents never see them.
func (h *Handler) withReplies(ctx context.Context, owner agent.Owner, view []*session.Record) ([]json.RawMessage, error) {
	at := map[int][]json.RawMessage{} // by the place in view that they stand before
	index := map[string]int{}
	for i, e := range view {
		index[e.ID] = i
	}
	for e, call := range asks(view) {
		if e.Kind != session.KindRequest || !request(call.Name) {
			continue // the results of long-running calls are events of their own
		}
		r, err := h.Requests.Request(ctx, call.ID, func(o agent.Owner) bool { return o == owner })
		switch {
		case errors.Is(err, auth.ErrNoRequest): // it was open once, and was deleted after its end
		case err != nil:
			return nil, fmt.Errorf("request of question: %w", err)
		case r.Status.Open():
			continue
		}
		body, err := json.Marshal(replyEvent(e, call, r))
		if err != nil {
			return nil, fmt.Errorf("encode reply: %w", err)
		}
		place := index[e.ID] + 1
		for place < len(view) && view[place].Timestamp < session.Seconds(r.Ended) {
			place++
		}
		at[place] = append(at[place], body)
	}
	out := make([]json.RawMessage, 0, len(view)+len(at))
	for i, e := range view {
		out = append(append(out, at[i]...), e.Body)
	}
	return append(out, at[len(view)]...), nil
}

// replyEvent is always the same for a request.
func replyEvent(asked *session.Record, call *genai.FunctionCall, r auth.Request) session.Event {
	response := map[string]any{}
	if r.Status != "" {
		response["status"] = string(r.Status)
	}
	if call.Name == agent.RequestConfirmation {
		response["confirmed"] = r.Status == auth.StatusGranted
	}
	return session.Event{
		ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte("tarry:reply:"+call.ID)).String(), InvocationID: asked.InvocationID, Author: agent.UserAuthor, Branch: asked.Branch,
		IsolationScope: asked.IsolationScope, Timestamp: max(asked.Timestamp, session.Seconds(r.Ended)),
		Content: &genai.Content{Role: genai.RoleUser, Parts: []*genai.Part{{FunctionResponse: &genai.FunctionResponse{ID: call.ID, Name: call.Name, Response: response}}}},
	}
}
