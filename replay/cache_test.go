package replay_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"tarry/wire"
	"tarry/workflows"
)

// cacheSize tells a process how many workflows it may keep in memory, which the SDK takes for a process alone.
const cacheSize = "TARRY_TEST_CACHE"

const patience = time.Minute

// The SDK's replayer keeps no workflow in memory, whatever the cache's size. So a worker is given the tasks of recorded
// histories: one that keeps nothing and replays everything at each task, and one that keeps all and never replays. Both
// decide as is recorded (pitfall T6).
func TestWorkersWithAndWithoutCache(t *testing.T) {
	t.Parallel()
	for _, size := range []string{"0", "10000"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			require.NoError(t, err)
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestWorker$", "-test.v")
			cmd.Env = append(os.Environ(), cacheSize+"="+size)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			for _, name := range fixtures(t) {
				require.Contains(t, string(out), "PASS: TestWorker/"+name)
			}
		})
	}
}

// TestWorker is what the processes of TestWorkersWithAndWithoutCache run.
func TestWorker(t *testing.T) {
	text, ok := os.LookupEnv(cacheSize)
	if !ok {
		t.Skip("it is run by TestWorkersWithAndWithoutCache")
	}
	size, err := strconv.Atoi(text)
	require.NoError(t, err)
	worker.SetStickyWorkflowCacheSize(size)
	for _, name := range fixtures(t) {
		t.Run(name, func(t *testing.T) { // one after the other: the workers of a process share its cache
			f := newFeeder(t, history(t, name), size > 0)
			c, err := client.NewLazyClient(client.Options{HostPort: f.addr, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
			require.NoError(t, err)
			t.Cleanup(c.Close)
			w := worker.New(c, wire.TaskQueue, worker.Options{LocalActivityWorkerOnly: true})
			w.RegisterWorkflowWithOptions(workflows.Agents(nil).Session, workflow.RegisterOptions{Name: wire.WorkflowSession})
			for name := range f.locals() {
				w.RegisterActivityWithOptions(func(ctx context.Context, _ any) (json.RawMessage, error) {
					return f.local(activity.GetInfo(ctx).ActivityID), nil
				}, activity.RegisterOptions{Name: name})
			}
			require.NoError(t, w.Start())
			t.Cleanup(w.Stop)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			require.True(t, f.until(ctx, f.over), "the worker does not come to the end")
			require.Empty(t, f.wrong)
		})
	}
}
