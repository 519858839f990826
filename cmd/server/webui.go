package main

import (
	"fmt"

	"tarry/internal/process"
	"tarry/server/webui"
)

const (
	webUIVariable  = "TARRY_WEB_UI"
	prefixVariable = "TARRY_API_PREFIX"
)

// webUI reads the build of the ADK web UI that an operator wants served; nil without one.
func webUI(e process.Environment) (*webui.Build, error) {
	folder := e.Get(webUIVariable, "")
	if folder == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	build, err := webui.Load(folder)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", webUIVariable, err)
	}
	return build, nil
}
