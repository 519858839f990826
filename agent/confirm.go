package agent

import (
	"slices"
	"strings"
)

// Confirms says whether a call of the tool, under the name that models and activities know it by, waits for approval.
func (m *MCPToolset) Confirms(tool string) bool {
	bare := tool
	if m.NamePrefix != "" {
		bare = strings.TrimPrefix(tool, m.NamePrefix+"_")
	}
	return m.RequireConfirmation || slices.Contains(m.Confirm, bare)
}
