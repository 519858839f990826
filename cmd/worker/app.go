//go:build !faults

package main

import "tarry"

// app is what this worker runs besides what definitions name: nothing.
func app(func(string) (string, bool)) (tarry.App, error) { return tarry.App{}, nil }
