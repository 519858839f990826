package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/stack"
)

// sseFrame is a frame of /run_sse.
type sseFrame struct {
	id   string
	body struct {
		event
		Partial bool
	}
}

// frames reads a stream of /run_sse until it ends or breaks off, and says whether it ended as streams do.
func (c apiClient) frames(body any, last string, each func(sseFrame)) (id string, ended bool) {
	c.t.Helper()
	text, err := json.Marshal(body)
	require.NoError(c.t, err)
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.base+"/run_sse", bytes.NewReader(text))
	require.NoError(c.t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return last, false
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			last = value
		case "data":
			f := sseFrame{id: last}
			require.NoError(c.t, json.Unmarshal([]byte(value), &f.body), value)
			each(f)
		}
	}
	return last, lines.Err() == nil
}

// A model's answer is read along word by word; the worker is killed in the middle of it, and then the server. Nothing is shown
// twice, the stream that broke off is read on, and the answer is one.
func TestAnswerIsReadAlongThroughKills(t *testing.T) {
	t.Parallel()
	const answer = "Release nine needs four tickets and one review by Friday. "
	w := newWorld(t, single("- text: "+`"`+answer+`"`+"\n  pace: 120ms\n"))
	var session struct{ ID string }
	require.Equal(t, http.StatusOK, w.api.call("POST", "/apps/assistant/users/user/sessions", map[string]any{}, &session))
	body := message(session.ID, map[string]string{"text": "What is to be done?"})
	body["streaming"] = true
	body["newMessage"].(map[string]any)["role"] = "user"

	w.hold("model.partial")
	var whole []event
	pieces, seen := "", map[string]bool{}
	killed := false
	each := func(f sseFrame) {
		if !f.body.Partial {
			whole = append(whole, f.body.event)
			return
		}
		require.NotEmpty(t, f.body.ID)
		require.False(t, seen[f.body.ID], "a piece came twice")
		seen[f.body.ID] = true
		pieces += f.body.Content.Parts[0].Text
		require.True(t, strings.HasPrefix(answer, pieces), "shown so far: %q", pieces)
		switch {
		case len(seen) == 1:
			w.killAt("model.partial", []stack.Name{stack.Worker})
		case len(seen) >= 3 && !killed:
			killed = true
			require.NoError(t, w.Kill(stack.Server))
		}
	}
	last, _ := w.api.frames(body, "", each)
	require.True(t, killed, "the answer came at once: %q", pieces)
	require.NoError(t, w.Start(t.Context(), stack.Server))
	w.eventually("the answer", func() bool {
		var ended bool
		last, ended = w.api.frames(body, last, each)
		return ended
	})
	require.Len(t, whole, 1)
	require.Equal(t, answer, whole[0].Content.Parts[0].Text)
	require.Equal(t, []string{"0"}, w.query(`SELECT COUNT(*) FROM partials`))
}
