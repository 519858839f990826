package invariants

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// Read reads the tables of a database, and a journal if there is one at the path.
func Read(ctx context.Context, db *sql.DB, journal string) (l Log, err error) {
	l.Trees = map[string]*Agent{}
	for query, row := range map[string]func(scan func(...any) error) error{
		`SELECT workflow_id, definition, tips FROM sessions`: func(scan func(...any) error) error {
			var s Session
			var tips string
			err := scan(&s.Workflow, &s.Definition, &tips)
			l.Sessions = append(l.Sessions, s)
			return errors.Join(err, json.Unmarshal([]byte(tips), &l.Sessions[len(l.Sessions)-1].Tips))
		},
		`SELECT workflow_id, invocation, id, kind, author, parents, body, created FROM events ORDER BY seq`: func(scan func(...any) error) error {
			e, err := readEvent(scan)
			l.Events = append(l.Events, e)
			return err
		},
		`SELECT workflow_id, invocation, id, agent, answer, asking FROM calls`: func(scan func(...any) error) error {
			var c Call
			err := scan(&c.Workflow, &c.Invocation, &c.ID, &c.Agent, &c.Answer, &c.Asking)
			l.Calls = append(l.Calls, c)
			return err
		},
		`SELECT workflow_id, invocation, id, agent, call, event, ended FROM requests`: func(scan func(...any) error) error {
			var r Request
			var ended int64
			err := scan(&r.Workflow, &r.Invocation, &r.ID, &r.Agent, &r.Call, &r.Event, &ended)
			r.Ended = instant(ended)
			l.Requests = append(l.Requests, r)
			return err
		},
		`SELECT workflow_id, id, ended FROM invocations`: func(scan func(...any) error) error {
			var i Invocation
			var ended int64
			err := scan(&i.Workflow, &i.ID, &ended)
			i.Ended = instant(ended)
			l.Invocations = append(l.Invocations, i)
			return err
		},
		`SELECT hash, body FROM definitions`: func(scan func(...any) error) error {
			var hash, body string
			if err := scan(&hash, &body); err != nil {
				return err
			}
			var d struct{ Root node }
			err := json.Unmarshal([]byte(body), &d)
			l.Trees[hash] = d.Root.agent()
			return err //nolint:wrapcheck // wrapped by the caller
		},
	} {
		if err := each(ctx, db, query, row); err != nil {
			return l, fmt.Errorf("%s: %w", query, err)
		}
	}
	l.Asked, err = readJournal(journal)
	return l, err
}

func each(ctx context.Context, db *sql.DB, query string, row func(scan func(...any) error) error) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := row(rows.Scan); err != nil {
			return fmt.Errorf("read row: %w", err)
		}
	}
	return rows.Err() //nolint:wrapcheck // wrapped by the caller
}

// instant reads microseconds since 1970; 0 is none.
func instant(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// kindInterim is that of what is known of a long-running call before its response.
const kindInterim = "interim"

func readEvent(scan func(...any) error) (e Event, err error) {
	var parents, body string
	var created int64
	if err := scan(&e.Workflow, &e.Invocation, &e.ID, &e.Kind, &e.Author, &parents, &body, &created); err != nil {
		return e, err
	}
	e.Created = instant(created)
	type id struct{ ID string }
	var content struct {
		Branch  string
		Content struct {
			Parts []struct{ FunctionCall, FunctionResponse *id }
		}
	}
	err = errors.Join(json.Unmarshal([]byte(parents), &e.Parents), json.Unmarshal([]byte(body), &content))
	e.Branch = content.Branch
	for _, p := range content.Content.Parts {
		if p.FunctionCall != nil {
			e.Calls = append(e.Calls, p.FunctionCall.ID)
		}
		if p.FunctionResponse != nil && e.Kind != kindInterim {
			e.Responses = append(e.Responses, p.FunctionResponse.ID)
		}
	}
	return e, err
}

// node is an agent as definitions have it.
type node struct {
	Name, Kind string
	SubAgents  []*node `json:"sub_agents"`
	Tools      []struct{ Agent *struct{ Agent *node } }
}

func (n *node) agent() *Agent {
	out := &Agent{Name: n.Name, Kind: n.Kind}
	for _, child := range n.SubAgents {
		out.Children = append(out.Children, child.agent())
	}
	for _, tool := range n.Tools {
		if tool.Agent != nil && tool.Agent.Agent != nil {
			out.Tools = append(out.Tools, tool.Agent.Agent.agent())
		}
	}
	return out
}

// readJournal reads what scripted models were asked. A process that was killed may have left half a line.
func readJournal(path string) (out []ModelRequest, err error) {
	body, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	for line := range strings.Lines(string(body)) {
		var r struct {
			Time                      time.Time
			Agent, Invocation, Digest string
			View                      []string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return out, fmt.Errorf("read journal: %w", err)
		}
		m := ModelRequest{Time: r.Time, Agent: r.Agent, Invocation: r.Invocation, Digest: r.Digest}
		for _, content := range r.View {
			m.Contents = append(m.Contents, contentOf(content))
		}
		out = append(out, m)
	}
	return out, nil
}

func contentOf(line string) (c Content) {
	words := strings.Fields(line)
	c.Role = words[0]
	for _, word := range words[1:] {
		switch kind, id, _ := strings.Cut(word, ":"); kind {
		case "call":
			c.Calls = append(c.Calls, id)
		case "response":
			c.Responses = append(c.Responses, id)
		}
	}
	return c
}
