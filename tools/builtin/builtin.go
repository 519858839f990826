package builtin

import "tarry/tools"

// All are the tools of this package, for a worker's registry. ADK's preload_memory is none of them: no model calls it.
func All() []tools.Tool {
	return []tools.Tool{ExitLoop(), RequestInput(), LoadArtifacts(), LoadMemory()}
}
