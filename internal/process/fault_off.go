//go:build !faults

package process

import "context"

// Fault returns nil: only test builds (tag faults) can be held at a point.
func Fault(func(string) (string, bool)) func(context.Context, string) { return nil }
