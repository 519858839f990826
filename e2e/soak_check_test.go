package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"tarry/e2e/invariants"
	"tarry/internal/demo"
	"tarry/replay"
)

// absent are runs of people who never come: they wait, whatever is killed.
func (c *crowd) absent() (out []runHandle) {
	c.t.Helper()
	for _, app := range []string{"chores", "planner", "both", "helper", "guarded", "typed", "asked", "talk"} {
		in := map[string]string{"task": canaryContent}
		if soakApps()[app] {
			in["mode"] = "chat"
		}
		out = append(out, c.api.startAs("absent-"+app, app, in))
	}
	for _, r := range out {
		c.waiting(r)
	}
	return out
}

// checkSoak checks all that must hold once everything rests: I1 to I10 of docs/architecture.md.
func checkSoak(c *crowd) {
	c.t.Helper()
	log, err := invariants.Read(c.t.Context(), c.db, c.journal())
	require.NoError(c.t, err)
	for _, v := range invariants.Check(log) { // I6, I8, I9
		c.t.Errorf("%s", v)
		c.tell(v.String())
	}
	state, err := invariants.CheckState(c.t.Context(), c.db) // I4, I5, I7, I8, I10
	require.NoError(c.t, err)
	for _, v := range state {
		c.t.Errorf("%s", v)
		c.tell(v.String())
	}
	c.checkTools()
	c.checkHistories(log)
	c.checkSecrets()
}

// tell shows the rows of the sessions whose requests a text names.
func (c *crowd) tell(text string) {
	c.t.Helper()
	for _, id := range regexp.MustCompile(`adk-[a-z0-9]+`).FindAllString(text, -1) {
		for _, query := range []string{
			`SELECT concat_ws(' ', created, kind, author, id, parents, invocation) FROM events WHERE workflow_id IN (SELECT workflow_id FROM requests WHERE id = $1) ORDER BY seq`,
			`SELECT concat_ws(' ', created, ended, status, id, agent, 'call', call, slot, event, invocation) FROM requests WHERE workflow_id IN (SELECT workflow_id FROM requests WHERE id = $1) ORDER BY seq`,
			`SELECT concat_ws(' ', started, asked, id, name, 'asking', asking, 'answer', answer, event) FROM calls WHERE workflow_id IN (SELECT workflow_id FROM requests WHERE id = $1) ORDER BY seq`,
			`SELECT concat_ws(' ', at, action, session, request, detail) FROM audit WHERE (app, usr) IN (SELECT app, usr FROM requests WHERE id = $1) ORDER BY seq`,
		} {
			rows, err := c.db.QueryContext(c.t.Context(), query, id)
			require.NoError(c.t, err)
			for rows.Next() {
				var line string
				require.NoError(c.t, rows.Scan(&line))
				c.t.Log(line)
			}
			require.NoError(c.t, errors.Join(rows.Err(), rows.Close()))
		}
	}
}

// checkTools: what may not be repeated ran once at most (I6), and every call was made with the account of the session's person (I7).
func (c *crowd) checkTools() {
	c.t.Helper()
	owners := map[string]string{}
	rows, err := c.db.QueryContext(c.t.Context(), `SELECT calls.id, sessions.usr FROM calls JOIN sessions ON sessions.workflow_id = calls.workflow_id`)
	require.NoError(c.t, err)
	defer rows.Close()
	for rows.Next() {
		var call, user string
		require.NoError(c.t, rows.Scan(&call, &user))
		owners[call] = user
	}
	require.NoError(c.t, rows.Err())
	arrived, effects := map[string]int{}, map[string]int{}
	for _, call := range c.mcp.Calls("") {
		user, known := owners[call.IdempotencyKey]
		switch {
		case !known:
			c.t.Errorf("I6: a call of %s has the key %q, which is no call's", call.Tool, call.IdempotencyKey)
		case soakPerson(user) != call.User:
			c.t.Errorf("I7: a call of %s for %s was made with the account of %s", call.Tool, user, call.User)
		}
		if slices.Contains([]string{"add_comment", "create_plan", "publish_plan"}, call.Tool) {
			arrived[call.IdempotencyKey]++
		}
	}
	for _, e := range c.mcp.Effects() {
		effects[e.IdempotencyKey]++
	}
	for _, counts := range []map[string]int{arrived, effects} {
		for key, n := range counts {
			if n > 1 {
				c.t.Errorf("I6: call %s, which may not run twice, ran %d times", key, n)
			}
		}
	}
	c.t.Logf("%d calls that may not run twice arrived, of %d", len(arrived), len(owners))
}

// checkHistories: each run's history is one that today's code makes, holds nothing of what was said (I2), and what waits has nothing
// running (I3).
func (c *crowd) checkHistories(log invariants.Log) {
	c.t.Helper()
	temporal := c.temporal()
	n := 0
	for _, s := range log.Sessions {
		for run := ""; ; {
			h, err := replay.Fetch(c.t.Context(), temporal, s.Workflow, run)
			var gone *serviceerror.NotFound
			if run == "" && errors.As(err, &gone) {
				break // a session to which nothing was said
			}
			require.NoError(c.t, err, s.Workflow)
			if _, err := (replay.Replayer{}).History(c.t.Context(), h); err != nil {
				c.t.Errorf("%s, run %q: %v", s.Workflow, run, err)
			}
			n++
			if run = h.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
				break
			}
		}
		c.eventually("I3: "+s.Workflow+" waits, and something runs", func() bool {
			found, err := temporal.DescribeWorkflow(c.t.Context(), s.Workflow, "")
			var gone *serviceerror.NotFound
			if err != nil {
				return errors.As(err, &gone)
			}
			d := found.RawResponse
			return d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING ||
				len(d.GetPendingActivities()) == 0 && d.GetPendingWorkflowTask() == nil
		})
	}
	c.t.Logf("%d sessions with %d histories, all replayed", len(log.Sessions), n)
}

// checkSecrets stops everything and looks for secrets in each table, log and file (I1), and in what Temporal and the logs keep for what was
// said (I2).
func (c *crowd) checkSecrets() {
	c.t.Helper()
	require.NoError(c.t, c.Stop(soakProcesses()...))
	mark := []byte(demo.DefaultMark)
	forms := [][]byte{mark, []byte(hex.EncodeToString(mark))}
	for skip := range 3 { // base64 has three ways to write what stands in the middle
		forms = append(forms, []byte(base64.RawStdEncoding.EncodeToString(append(make([]byte, skip), mark...))[skip+1:len(mark)]))
	}
	look := func(where string, body []byte) {
		for _, form := range forms {
			if bytes.Contains(body, form) {
				c.t.Errorf("I1: a secret stands in %s: …%s…", where, around(body, string(form)))
			}
		}
	}
	tables, err := c.db.QueryContext(c.t.Context(), `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`)
	require.NoError(c.t, err)
	var names []string
	for tables.Next() {
		var name string
		require.NoError(c.t, tables.Scan(&name))
		names = append(names, name)
	}
	require.NoError(c.t, tables.Err())
	require.Contains(c.t, names, "grants")
	for _, name := range names {
		rows, err := c.db.QueryContext(c.t.Context(), `SELECT row_to_json(t)::text FROM `+name+` t`) //nolint:gosec // G202: a name that the database gave //nolint:gosec // names of our own tables
		require.NoError(c.t, err)
		for rows.Next() {
			var body []byte
			require.NoError(c.t, rows.Scan(&body))
			look(name, body)
		}
		require.NoError(c.t, rows.Err())
	}
	var kept int
	require.NoError(c.t, filepath.WalkDir(filepath.Join(c.dir, "data"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		body, err := os.ReadFile(path) //nolint:gosec // the test's own folder
		look(path, body)
		if bytes.Contains(body, []byte(canaryContent)) {
			c.t.Errorf("I2: what was said stands in %s: …%s…", path, around(body, canaryContent))
		}
		kept++
		return err
	}))
	require.Greater(c.t, kept, len(soakProcesses()))
}
