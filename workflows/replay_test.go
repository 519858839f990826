package workflows_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"tarry/replay"
	"tarry/workflows"
)

// cacheSize tells a process started by TestHistories how many workflows it may keep in memory.
const cacheSize = "TARRY_TEST_STICKY_CACHE"

// recorded are the custom agents of the fixtures, as they were.
func recorded() workflows.Agents {
	flow := func(tool string, args map[string]any) workflows.AgentFunc {
		return func(a *workflows.Agent) error {
			if _, err := a.Run("asker"); err != nil {
				return err
			}
			var out json.RawMessage
			if err := a.Call(tool, args, &out); err != nil {
				return err
			}
			if _, err := a.Run("follower"); err != nil {
				return err
			}
			return a.Emit(workflows.Emission{Text: "the flow got " + string(out)})
		}
	}
	return workflows.Agents{"flow_credential": flow("read", nil), "flow_input": flow("request_input", map[string]any{"message": "How many?"})}
}

func fixtures(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/histories/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// Recorded histories fit today's code: in a fresh process, with nothing in memory and with everything (pitfalls T6, T9,
// T10). They were recorded by go test ./e2e -run TestRecordHistories -update.
func TestHistories(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"0", "10000"} {
		t.Run("sticky cache of "+size, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestHistory$", "-test.v")
			cmd.Env = append(os.Environ(), cacheSize+"="+size)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			for _, file := range fixtures(t) {
				require.Contains(t, string(out), "PASS: TestHistory/"+filepath.Base(file))
			}
		})
	}
}

// TestHistory replays every fixture in this process, where TestHistories has set the cache's size.
func TestHistory(t *testing.T) {
	t.Parallel()
	if size, ok := os.LookupEnv(cacheSize); ok {
		n, err := strconv.Atoi(size)
		require.NoError(t, err)
		worker.SetStickyWorkflowCacheSize(n)
	}
	for _, file := range fixtures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			r, err := replay.Replayer{Agents: recorded()}.File(t.Context(), file)
			require.NoError(t, err)
			require.Positive(t, r.Activities)
		})
	}
}

// A message that is cancelled while it is queued costs no call: only a tool or model that runs already has to be cancelled.
func TestCancelledMessageRunsNothing(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/histories/chat_cancelled.json")
	require.NoError(t, err)
	require.NotContains(t, string(body), "ACTIVITY_TASK_CANCEL")
}

// Histories hold ids, names and counts: nothing that was said, no link, no secret (invariants I1, I2; pitfall T11).
func TestHistoriesHoldNoContent(t *testing.T) {
	t.Parallel()
	words := regexp.MustCompile(`(?i)tarrycanary_|ticket(s)? (please|with)|with my tickets|four tickets|next release|you plan the|help with tickets|noted|` +
		`dark mode|rate limits|replan|hello|http://|https://|/home/|/root/|alice|password|bearer|client_secret`)
	for _, file := range fixtures(t) {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Empty(t, words.FindAllString(string(body), -1), file)
		for _, payload := range regexp.MustCompile(`"data": ?"([^"]*)"`).FindAllStringSubmatch(string(body), -1) {
			text := decode(t, payload[1])
			require.Empty(t, words.FindAllString(text, -1), file)
			require.LessOrEqual(t, len(text), 1024, "%s: %s", file, text)
		}
		require.NotContains(t, strings.ToLower(string(body)), "stacktrace\": \"goroutine", file)
	}
}
