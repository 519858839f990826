package stack_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Only Linux has a signal at a parent's death, hence the name of this file.
func TestNothingIsLeftByAKilledParent(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), filepath.Join(bin(t), "parent"), t.TempDir()) //nolint:gosec // our own binary
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for _, field := range strings.Fields(line) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		eventuallyGone(t, pid)
	}
}
