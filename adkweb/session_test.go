//go:build adkweb

package adkweb_test

import (
	"encoding/json"
	"net/http"

	"github.com/stretchr/testify/require"
)

// event is what these tests look at of a session's event.
type event struct {
	ID      string
	Author  string
	Content struct{ Parts []part }
}

type part struct {
	Text             string
	FunctionCall     *struct{ Name string }
	FunctionResponse *struct{ Name string }
}

// events are those of the session in the person's window, as the API has them.
func (p *play) events() []event {
	p.t.Helper()
	var s struct{ Events []event }
	p.get("/apps/"+p.app+"/users/"+p.user+"/sessions/"+p.main.session(), &s)
	return s.Events
}

func (p *play) get(path string, out any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.URL()+path, http.NoBody)
	require.NoError(p.t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(p.t, err)
	defer resp.Body.Close()
	require.Equal(p.t, http.StatusOK, resp.StatusCode, path)
	require.NoError(p.t, json.NewDecoder(resp.Body).Decode(out))
}

// calls and responses are how many of a name the session has.
func (p *play) calls(name string) (n int) {
	for _, e := range p.events() {
		for _, part := range e.Content.Parts {
			if part.FunctionCall != nil && part.FunctionCall.Name == name {
				n++
			}
		}
	}
	return n
}

func (p *play) responses(name string) (n int) {
	for _, e := range p.events() {
		for _, part := range e.Content.Parts {
			if part.FunctionResponse != nil && part.FunctionResponse.Name == name {
				n++
			}
		}
	}
	return n
}
