package tarry

import (
	"runtime/debug"
	"strings"
)

// version is that of this module in the running program, "devel" when it was not built from a release.
func version() string {
	const module = "tarry"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	all := append([]*debug.Module{&info.Main}, info.Deps...)
	for _, m := range all {
		if m.Path == module && strings.HasPrefix(m.Version, "v") {
			return m.Version
		}
	}
	return "devel"
}
