package embedded //nolint:testpackage // the logger is nobody else's

import (
	"bytes"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/server/common/log/tag"
)

// Services of one process that wait for the frontend make no noise; what else they say is kept.
func TestWaitingForTheFrontendIsNoWarning(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := logger{handler: slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})}
	l.Warn("error creating sdk client", tag.Error(errors.New("failed reaching server: Frontend is not healthy yet")))
	l.Error("service failures", tag.Error(errors.New("Frontend is not healthy yet")))
	require.Empty(t, out.String())
	l.Warn("error creating sdk client", tag.Error(errors.New("disk is full")))
	require.Contains(t, out.String(), "disk is full")
}
