//go:build faults

package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Fault holds the process at named points, so that a test can kill it there. TARRY_FAULT_DIR is a folder: when
// "POINT.hold" exists in it, the process that reaches POINT removes it, writes its id to "POINT.held" and stays until "POINT.go"
// appears or it is killed. While "POINT.all" exists, everybody who reaches POINT stays.
func Fault(lookup func(string) (string, bool)) func(context.Context, string) {
	dir, ok := lookup("TARRY_FAULT_DIR")
	if !ok || dir == "" {
		return nil
	}
	return func(ctx context.Context, point string) {
		point = strings.ReplaceAll(point, "/", "_")
		watch(ctx, func() bool { return !there(filepath.Join(dir, point+".all")) })
		// Removing is the claim: of several processes, or goroutines, one is held.
		if os.Remove(filepath.Join(dir, point+".hold")) != nil {
			return
		}
		held := filepath.Join(dir, point+".held")
		_ = os.WriteFile(held+".new", []byte(strconv.Itoa(os.Getpid())), 0o600)
		_ = os.Rename(held+".new", held)
		watch(ctx, func() bool { return there(filepath.Join(dir, point+".go")) })
	}
}
