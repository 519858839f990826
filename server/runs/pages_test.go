package runs_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/wire"
)

// Every list is bounded, goes on from where it ended, and shows no row twice and leaves none out when others come in between.
func TestListsInPages(t *testing.T) { //nolint:tparallel // each adds sessions that the others would list
	t.Parallel()
	b := setup(t)
	const rows = 7
	add := func(id string) {
		b.player(id).Post("hi", wire.ModeJob)
	}
	for i := range rows {
		add(fmt.Sprint("s", i))
	}
	for _, query := range []string{"/runs?user=ann", "/runs?user=ann&all=true", "/runs?user=ann&app=" + ann.App} {
		t.Run(query, func(t *testing.T) {
			var seen []string
			for after, page := "", 0; ; page++ {
				body := b.get(query + "&limit=3&after=" + after)
				listed := body["runs"].([]any)
				require.LessOrEqual(t, len(listed), 3)
				for _, r := range listed {
					seen = append(seen, r.(map[string]any)["session"].(string))
				}
				add(fmt.Sprint("new", page, len(query)))
				next, more := body["next"].(string)
				if after = next; !more {
					break
				}
			}
			require.Equal(t, []string{"s6", "s5", "s4", "s3", "s2", "s1", "s0"}, seen[len(seen)-rows:])
			all := map[string]bool{}
			for _, id := range seen {
				require.False(t, all[id], id)
				all[id] = true
			}
		})
	}
	for _, path := range []string{"/runs?user=ann", "/logins?user=ann", "/apps/" + ann.App + "/users/ann/sessions/s0/events?x=x"} {
		for _, query := range []string{"&limit=0", "&limit=1001", "&limit=x", "&after=x"} {
			status, body := b.do(http.MethodGet, path+query, "")
			require.Equal(t, http.StatusBadRequest, status, path+query+body)
		}
	}
	first := b.get("/runs?user=ann&limit=1")["next"].(string)
	status, _ := b.do(http.MethodGet, "/logins?user=ann&after="+first, "")
	require.Equal(t, http.StatusBadRequest, status, "a cursor of another list")
}

func TestEventsInPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.player("s")
	p.Post("hi", wire.ModeChat)
	p.Take()
	for i := range 6 {
		p.Say(fmt.Sprint("text ", i))
	}
	path := "/apps/" + ann.App + "/users/ann/sessions/s/events"
	read := func(path string) (ids []string, next string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+path, http.NoBody)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		var events []struct {
			ID string `json:"id"`
		}
		require.NoError(t, json.NewDecoder(resp.Body).Decode(&events))
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		if m := regexp.MustCompile(`^<(.*)>; rel="next"$`).FindStringSubmatch(resp.Header.Get("Link")); m != nil {
			next = m[1]
		}
		return ids, next
	}
	all, next := read(path)
	require.Empty(t, next)
	require.Len(t, all, 7)
	var pages []string
	for next = path + "?limit=3"; next != ""; {
		var page []string
		page, next = read(next)
		require.LessOrEqual(t, len(page), 3)
		pages = append(pages, page...)
	}
	require.Equal(t, all, pages)
}
