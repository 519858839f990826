package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fakeSuite answers with what a shell script prints.
func fakeSuite(t *testing.T, script string) *suite {
	t.Helper()
	dir := t.TempDir()
	index := filepath.Join(dir, "conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js")
	require.NoError(t, os.MkdirAll(filepath.Dir(index), 0o700))
	require.NoError(t, os.WriteFile(index, []byte(script+"\n"), 0o600))
	_, err := newSuite(dir)
	require.ErrorContains(t, err, ".ci/npm conformance installs it")
	// Not a program of our own: one that was just written is busy while another test starts a process.
	require.NoError(t, os.Symlink("/bin/sh", filepath.Join(dir, "node")))
	s, err := newSuite(dir)
	require.NoError(t, err)
	return s
}

func TestScenariosAreAskedFor(t *testing.T) {
	t.Parallel()
	s := fakeSuite(t, `case "$*" in
"list --requirements 2025-11-25") printf 'Required:\n\nServer scenarios (x):\n  - ping\n\nClient scenarios (y):\n  - initialize\n  - auth/a\n\nRun and reported:\n  extension (1):\n    - auth/b [client]\n  - auth/c\n' ;;
"list --requirements 2026-07-28") printf 'Client scenarios (y):\n  - auth/a\n' ;;
"list --client --spec-version 2025-03-26") printf 'Client scenarios (y):\n  - auth/old [2025-03-26]\n' ;;
*) exit 1 ;;
esac`)
	got, err := s.scenarios(t.Context())
	require.NoError(t, err)
	require.Equal(t, []scenario{
		{"2025-11-25", "initialize", true},
		{"2025-11-25", "auth/a", true},
		{"2026-07-28", "auth/a", true},
		{"2025-03-26", "auth/old", false},
	}, got)
	require.Equal(t, "auth_a_2026_07_28", got[2].id())

	_, err = fakeSuite(t, "echo nothing").scenarios(t.Context())
	require.ErrorContains(t, err, "names no client scenario")
	_, err = fakeSuite(t, "exit 3").scenarios(t.Context())
	require.ErrorContains(t, err, "list scenarios --requirements 2025-11-25")
}

func TestOnlyWhatTheSuiteCallsPassedHasPassed(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]bool{
		"echo 'OVERALL: PASSED' >&2":              true,
		"echo 'OVERALL: PASSED' >&2; exit 1":      false,
		"echo 'SKIPPED: scenario …'":              false,
		"echo 'OVERALL: FAILED' >&2; exit 1":      false,
		`test "$7" = 2026-07-28 && echo "$@" >&2`: false,
	} {
		passed, output, err := fakeSuite(t, script).run(t.Context(), scenario{"2026-07-28", "tools_call", true}, t.TempDir(), nil)
		require.NoError(t, err, script)
		require.Equal(t, want, passed, "%s: %s", script, output)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	list := []scenario{{"2025-11-25", "initialize", true}, {"2026-07-28", "tools_call", true}, {"2026-07-28", "auth/a", true}, {oldest, "auth/old", false}}
	var out bytes.Buffer
	r := newReport(&out, list)
	r.add(list[0], true, time.Second, "")
	r.add(list[1], false, time.Second, "Starting\n\nClient exited with code 1\nStderr: no\n\nChecks:\nmany\n\nTest Results:\nPassed: 0/1\n")
	require.False(t, r.good())
	require.Contains(t, out.String(), "    Client exited with code 1\n    Stderr: no\n")
	require.Contains(t, out.String(), "    Test Results:\n    Passed: 0/1\n")
	require.NotContains(t, out.String(), "many")
	out.Reset()
	r.verdict()
	require.Equal(t, "not passed: 2026-07-28/tools_call\nnot passed: 2026-07-28/auth/a\nnot passed: 2025-03-26/auth/old\n"+
		"back-compat: 0 of 1 scenarios passed\nconformance: 1 of 3 required scenarios passed\n", out.String())
	for _, s := range list {
		r.add(s, true, time.Second, "")
	}
	require.True(t, r.good())
}

func TestTheSecretIsAReference(t *testing.T) {
	t.Parallel()
	s := settings{member: "auth_pre_registration", dir: t.TempDir(), scenario: "auth/pre-registration"}
	require.NoError(t, writeAgent(s, "http://localhost:1/mcp", given{ClientID: "c", ClientSecret: "of the suite", Issuer: "http://localhost:2"}))
	agent, err := os.ReadFile(filepath.Join(s.dir, "agents/auth_pre_registration/root_agent.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(agent), `"client_secret": "${file:auth_pre_registration}"`)
	require.NotContains(t, string(agent), "of the suite")
	secret, err := os.ReadFile(filepath.Join(s.dir, "secrets/auth_pre_registration"))
	require.NoError(t, err)
	require.Equal(t, "of the suite", string(secret))
}
