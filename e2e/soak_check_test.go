package e2e_test

import (
	"github.com/stretchr/testify/require"

	"tarry/e2e/invariants"
)

// checkSoak checks all that must hold once everything rests.
func checkSoak(c *crowd) {
	c.t.Helper()
	log, err := invariants.Read(c.t.Context(), c.db, c.journal())
	require.NoError(c.t, err)
	require.Empty(c.t, invariants.Check(log))
}
