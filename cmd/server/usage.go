package main

import (
	"maps"

	"tarry"
	"tarry/internal/process"
)

func usage() string {
	vars := tarry.Variables()
	for _, workers := range []string{"TARRY_AGENTS_DIR", "TARRY_VARS", "TARRY_ALLOW_STDIO", "TARRY_STDIO_ENV", "TARRY_SCRIPTS_DIR", "TARRY_SCRIPT_JOURNAL", "TARRY_MAX_OPEN_REQUESTS"} {
		delete(vars, workers)
	}
	vars["TARRY_HTTP_ADDR"] = "address to listen on (default 127.0.0.1:8080)"
	vars["TARRY_RETURN_URLS"] = "further addresses, exactly as they are and separated by commas, to which clients may have browsers sent back after a login"
	maps.Copy(vars, limitVariables())
	vars[prefixVariable] = "/api to serve the API below that path as well, where clients of adk-go look for it (default: at the root alone)"
	vars[webUIVariable] = "folder of a build of the ADK web UI, dist/browser of npm's @google/adk-devtools, to serve at /dev-ui/"
	vars["TARRY_WEBHOOKS"] = "file of the endpoints that get signed webhooks"
	vars["TARRY_CONTINUE_AFTER"] = "history events after which runs continue as new (default 0: when Temporal suggests it)"
	maps.Copy(vars, signInVariables())
	return process.Usage("Usage: server [health]\n\nServes the API, the connect pages and the OAuth callback; health asks the one that runs whether it is ready.", vars)
}
