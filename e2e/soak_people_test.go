package e2e_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"tarry/internal/demo"
)

// crowd are the people of a soak and the programs that start runs for them. They ask whichever server is there, give up after a
// while, and come back; nothing of what they do fails a test by itself.
type crowd struct {
	*world
	db   *sql.DB
	base string
	// open is how many messages are worked at, at once.
	open int
	done sync.WaitGroup
}

// begin starts runs until ctx ends, as long as fewer than open are worked at.
func (c *crowd) begin(ctx context.Context, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test that can be repeated
	names := slices.Sorted(maps.Keys(soakApps()))
	for n := 0; ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
		if c.count(ctx, `SELECT COUNT(*) FROM invocations WHERE ended = 0`) >= c.open {
			continue
		}
		app := names[random.IntN(len(names))]
		in := map[string]string{"task": fmt.Sprint(canaryContent, ", number ", n)}
		if soakApps()[app] {
			in["mode"], in["session"] = "chat", fmt.Sprint("talk-", n/8)
		}
		// Some share a login, and some come when it has been given.
		c.post(ctx, app, fmt.Sprint("user", n/4), in)
		n++
	}
}

func (c *crowd) post(ctx context.Context, app, user string, in map[string]string) {
	for ctx.Err() == nil {
		// Whether a request was taken whose answer was lost is not known: a program that wants certainty names the session.
		if status := c.ask(ctx, http.MethodPost, "/apps/"+app+"/users/"+user+"/runs", in, nil); status == http.StatusAccepted || status == http.StatusConflict {
			return
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// answer gives people's answers until ctx ends: everything that is open is looked at, again and again. Those of users whose names
// begin with "absent" never come.
func (c *crowd) answer(ctx context.Context, seed uint64, people int) {
	type asked struct{ app, user, session string }
	work := make(chan asked)
	var busy sync.Map
	for i := range people {
		c.done.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(2+i))) //nolint:gosec // a test that can be repeated
			for a := range work {
				c.visitOne(ctx, random, runHandle{apiClient{}, a.app, a.user, a.session})
				busy.Delete(a)
			}
		})
	}
	c.done.Go(func() {
		defer close(work)
		for ; ctx.Err() == nil; pause(ctx, 50*time.Millisecond) {
			rows, err := c.db.QueryContext(ctx, `SELECT DISTINCT app, usr, session FROM requests WHERE ended = 0 AND usr NOT LIKE 'absent%'`)
			if err != nil {
				continue // the database is being killed too
			}
			var open []asked
			for rows.Next() {
				var a asked
				if rows.Scan(&a.app, &a.user, &a.session) == nil {
					open = append(open, a)
				}
			}
			_, _ = rows.Err(), rows.Close()
			for _, a := range open {
				if _, there := busy.LoadOrStore(a, true); there {
					continue
				}
				select {
				case work <- a:
				case <-ctx.Done():
					return
				}
			}
		}
	})
}

// visitOne answers what a session waits for; some people say no, and some give up the whole.
func (c *crowd) visitOne(ctx context.Context, random *rand.Rand, r runHandle) {
	var s runStatus
	if c.ask(ctx, http.MethodGet, r.path("/status"), nil, &s) != http.StatusOK {
		return
	}
	if random.IntN(40) == 0 {
		c.ask(ctx, http.MethodPost, r.path("/cancel"), map[string]string{"invocation": s.Invocation}, nil)
		return
	}
	for _, open := range s.WaitingFor {
		person, yes := soakPerson(r.user), random.IntN(12) > 0
		switch open.Kind {
		case "login":
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			if yes {
				_, _ = demo.NewBrowser().Login(ctx, open.Link, person, person+"-password")
			} else {
				_, _ = demo.NewBrowser().Deny(ctx, open.Link, person, person+"-password")
			}
			cancel()
		case "key":
			c.ask(ctx, http.MethodPost, r.path("/keys/"+open.Request), map[string]any{"secret": soakKey(person)}, nil)
		case "confirmation":
			c.ask(ctx, http.MethodPost, r.path("/confirmations/"+open.Request), map[string]any{"confirmed": yes}, nil)
		case "question":
			c.ask(ctx, http.MethodPost, r.path("/inputs/"+open.Request), map[string]any{"response": 12}, nil)
		}
	}
}

// count is a number from the database; one that is too high where there is none.
func (c *crowd) count(ctx context.Context, query string) int {
	var n int
	if c.db.QueryRowContext(ctx, query).Scan(&n) != nil {
		return 1 << 30
	}
	return n
}

// pause is how long a person, or a killer, does nothing.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// anyServer says which of the servers a request goes to.
func anyServer(string) int { return rand.IntN(2) } //nolint:gosec // of no consequence

// ask is the status of a request; 0 when nobody was there until its end.
func (c *crowd) ask(ctx context.Context, method, path string, in, out any) int {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var body bytes.Buffer
	if in != nil && json.NewEncoder(&body).Encode(in) != nil {
		return 0
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, &body)
	if err != nil {
		return 0
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0
	}
	if out != nil && resp.StatusCode == http.StatusOK && json.Unmarshal(text, out) != nil {
		return 0
	}
	return resp.StatusCode
}
