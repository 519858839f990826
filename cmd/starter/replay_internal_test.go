package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/replay"
)

const fixtures = "../../workflows/testdata/histories/"

func fixture(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(fixtures + name + ".json")
	require.NoError(t, err)
	return body
}

func save(t *testing.T, path string, body []byte) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
	require.NoError(t, os.WriteFile(path, body, 0o600))
	return path
}

// withHistories is a server whose user has sessions with histories: one of them continued as new.
func withHistories(t *testing.T) *fakeServer {
	t.Helper()
	f := newFake(t)
	f.runs = []statusInfo{session("granted", "s1", "done", nil), session("continued", "s2", "done", nil), session("planner", "s3", "done", nil)}
	last := fixture(t, "continued")
	h, err := replay.Read(bytes.NewReader(last))
	require.NoError(t, err)
	f.histories = map[string][]byte{
		"s1 ": fixture(t, "granted"), "s2 ": last, "s2 " + first(h).GetContinuedExecutionRunId(): fixture(t, "continued_run1"), "s3 ": []byte(`{"events":[]}`),
	}
	return f
}

func TestReplay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fits := save(t, filepath.Join(dir, "all", "deep", "fits.json"), fixture(t, "granted"))
	changed := bytes.Replace(fixture(t, "granted"), []byte("tool/mcp/list_tickets"), []byte("tool/mcp/drop_tickets"), 1)
	differs := save(t, filepath.Join(dir, "all", "differs.json"), changed)
	broken := save(t, filepath.Join(dir, "broken.json"), []byte("{"))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "empty"), 0o750))
	f := withHistories(t)
	for name, c := range map[string]struct {
		args   []string
		status int
		stdout []string
		stderr string
	}{
		"fits":        {args: []string{fits}, stdout: []string{fits + ": fits, 52 events, 6 activities\n"}},
		"differs":     {args: []string{differs}, status: 1, stdout: []string{differs + ": differs: event 25: the run called tool mcp/drop_tickets; the code would call tool mcp/list_tickets. The first 3 activities agree."}},
		"a folder":    {args: []string{filepath.Join(dir, "all")}, status: 1, stdout: []string{"deep/fits.json: fits", "differs.json: differs: event 25"}, stderr: "1 of 2 fit, 1 differ\n"},
		"no JSON":     {args: []string{broken}, status: 2, stdout: []string{"broken.json: replay: not a session's history"}},
		"worst first": {args: []string{fits, differs, broken}, status: 2, stderr: "1 of 3 fit, 1 differ, 1 could not be checked\n"},
		"no such":     {args: []string{fits, filepath.Join(dir, "none.json")}, status: 2, stdout: []string{"none.json: no such file"}},
		"empty":       {args: []string{filepath.Join(dir, "empty")}, status: 2, stderr: "holds no *.json"},
		"nothing":     {status: 2, stderr: "name files, folders or sessions, or say --all-open"},
		"a session":   {args: []string{"s1"}, stdout: []string{"s1: fits, 52 events, 6 activities\n"}},
		"no session":  {args: []string{"s9"}, status: 2, stderr: `user user has no session "s9"`},
		"of an app":   {args: []string{"s2", "--app", "continued"}, stdout: []string{"s2: fits, 26 events"}},
		"no events":   {args: []string{"s3"}, status: 2, stdout: []string{"s3: replay: not a session's history"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"replay", "--server", f.URL}, c.args...)
			status, stdout, stderr := starter(t.Context(), nil, args...)
			require.Equal(t, c.status, status, stdout+stderr)
			for _, want := range c.stdout {
				require.Contains(t, stdout, want)
			}
			require.Contains(t, stderr, c.stderr)
		})
	}
}

func TestReplayJSON(t *testing.T) {
	t.Parallel()
	changed := bytes.Replace(fixture(t, "granted"), []byte("tool/mcp/list_tickets"), []byte("tool/mcp/drop_tickets"), 1)
	differs := save(t, filepath.Join(t.TempDir(), "differs.json"), changed)
	status, stdout, stderr := starter(t.Context(), nil, "replay", "--json", fixtures+"expired.json", differs)
	require.Equal(t, exitFailed, status)
	require.Empty(t, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 2)
	require.JSONEq(t, `{"name":"`+fixtures+`expired.json","fits":true,"events":54,"activities":6,"local_activities":3,"timers":1}`, lines[0])
	var line replayLine
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &line))
	require.False(t, line.Fits)
	require.Equal(t, int64(25), line.Difference.Event)
	require.Equal(t, "called tool mcp/drop_tickets", line.Difference.Then)
	require.Equal(t, "call tool mcp/list_tickets", line.Difference.Now)
	require.Equal(t, 3, line.Difference.Agreed)
	require.Contains(t, line.Difference.SDK, "TMPRL1100")
	require.NotEmpty(t, line.Error)
}

// Open runs are Temporal's to list; without it, nothing was checked.
func TestReplayAllOpenWithoutTemporal(t *testing.T) {
	t.Setenv("TEMPORAL_ADDRESS", "127.0.0.1:1")
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
	status, stdout, stderr := starter(t.Context(), nil, "replay", "--all-open")
	require.Equal(t, exitUnusable, status)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "connect to Temporal at 127.0.0.1:1")
}

// An export replays and tells nothing of who had the run; a chain is written run by run.
func TestExport(t *testing.T) {
	t.Parallel()
	f := withHistories(t)
	dir := t.TempDir()
	export := func(args ...string) (int, string, string) {
		return starter(t.Context(), nil, append([]string{"export", "--server", f.URL}, args...)...)
	}
	status, stdout, stderr := export("s1")
	require.Zero(t, status, stderr)
	require.NotContains(t, stdout, "@")
	_, err := replay.Reader(t.Context(), strings.NewReader(stdout))
	require.NoError(t, err)
	_, again, _ := export("s1")
	require.Equal(t, stdout, again, "the same each time")

	status, raw, _ := export("s1", "--raw")
	require.Zero(t, status)
	require.Contains(t, raw, "@host")

	out := filepath.Join(dir, "run.json")
	status, stdout, stderr = export("s2", "--chain", "-o", out)
	require.Zero(t, status, stderr)
	require.Empty(t, stdout)
	require.Equal(t, "history written to "+filepath.Join(dir, "run_run1.json")+"\nhistory written to "+out+"\n", stderr)
	status, stdout, stderr = starter(t.Context(), nil, "replay", dir)
	require.Zero(t, status, stdout+stderr)
	require.Equal(t, "2 of 2 fit\n", stderr)
	one, err := os.ReadFile(out)
	require.NoError(t, err)
	two, err := os.ReadFile(filepath.Join(dir, "run_run1.json"))
	require.NoError(t, err)
	h, err := replay.Read(bytes.NewReader(one))
	require.NoError(t, err)
	require.Contains(t, string(two), first(h).GetContinuedExecutionRunId(), "ids agree over the chain")

	h, err = replay.Read(bytes.NewReader(f.histories["s2 "]))
	require.NoError(t, err)
	run := first(h).GetContinuedExecutionRunId()
	status, stdout, stderr = export("s2", "--run", run)
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "CONTINUED_AS_NEW")

	delete(f.histories, "s2 "+run)
	status, _, stderr = export("s2", "--chain", "-o", out)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "earlier runs are past their retention")
	status, _, stderr = export("s2", "--run", run)
	require.Equal(t, exitUnusable, status)
	require.Contains(t, stderr, "session does not exist") // the fake's words
}

func TestExportRefused(t *testing.T) {
	t.Parallel()
	f := withHistories(t)
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		"s9": {2, "has no session"}, "s1 --chain": {2, "name the last with -o FILE"}, "s3": {1, "not a session's history"},
		"s1 -o " + filepath.Join(t.TempDir(), "no", "out.json"): {2, "write history"},
	} {
		status, stdout, stderr := starter(t.Context(), nil, append([]string{"export", "--server", f.URL}, strings.Fields(args)...)...)
		require.Equal(t, want.status, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want.says)
	}
}
