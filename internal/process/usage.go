package process

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Usage is the help text of a [Program]: intro, then the variables with what they mean, those of every program included.
func Usage(intro string, variables map[string]string) string {
	all := map[string]string{
		"TARRY_LOG_LEVEL":  "debug, info, warn or error (default info)",
		"TARRY_LOG_FORMAT": "json or text (default json)",
		"TEMPORAL_ADDRESS": "Temporal frontend (default 127.0.0.1:7233); TEMPORAL_NAMESPACE, TEMPORAL_API_KEY and the TLS variables of Temporal's environment configuration work too",
	}
	maps.Copy(all, variables)
	var b strings.Builder
	b.WriteString(intro + " Configuration is read from the environment:\n\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "  %-22s %s\n", name, all[name])
	}
	return b.String()
}
