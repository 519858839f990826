package metrics_test

import (
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/metrics"
)

func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	h := metrics.New()
	h.Counter("temporal_request").Inc(2)
	h.WithTags(map[string]string{"operation": "Poll"}).Counter("temporal_request").Inc(3)
	h.WithTags(map[string]string{"operation": "Poll"}).Counter("temporal_request").Inc(1)
	h.WithTags(map[string]string{"activity_type": "tool/mcp/list_tickets"}).Timer("temporal_activity_execution_latency").Record(time.Second)
	h.Gauge("temporal_sticky-cache.size").Update(7)
	rec := httptest.NewRecorder()
	h.HTTP().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	for _, line := range []string{
		"temporal_request 2\n",
		`temporal_request{operation="Poll"} 4` + "\n",
		`temporal_activity_execution_latency_seconds_count{activity_type="tool"} 1` + "\n",
		"temporal_sticky_cache_size 7\n",
		"go_goroutines ",
	} {
		require.Contains(t, rec.Body.String(), line)
	}
}
