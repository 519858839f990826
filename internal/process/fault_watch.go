//go:build faults

package process

import (
	"context"
	"os"
	"time"
)

func there(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// watch returns when over says so, or with ctx.
func watch(ctx context.Context, over func() bool) {
	if over() {
		return
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if over() {
				return
			}
		}
	}
}
