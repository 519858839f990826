package main

import (
	"fmt"

	"tarry/internal/process"
	"tarry/server/web"
)

// allowOrigins is TARRY_ALLOW_ORIGINS.
func allowOrigins(e process.Environment) (web.Origins, error) {
	out, err := web.ParseOrigins(split(e.Get("TARRY_ALLOW_ORIGINS", "")))
	if err != nil {
		return out, fmt.Errorf("TARRY_ALLOW_ORIGINS: %w", err)
	}
	return out, nil
}
