package workflows_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, payload string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(payload)
	require.NoError(t, err)
	return string(text)
}
