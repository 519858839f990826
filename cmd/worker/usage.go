package main

import (
	"tarry"
	"tarry/internal/process"
)

func usage() string {
	vars := tarry.Variables()
	vars["TARRY_ADMIN_ADDR"] = "address of /healthz, /readyz and /metrics (default 127.0.0.1:8081)"
	vars["TARRY_STICKY_CACHE"] = "workflows kept in memory (default 10000)"
	vars["GEMINI_API_KEY"] = "key of gemini/… models; GOOGLE_API_KEY works too"
	vars["GEMINI_API_KEY_FILE"] = "file with that key"
	vars["GEMINI_BASE_URL"] = "address of the Gemini API, if it is another"
	vars["OPENAI_API_KEY"] = "key of openai/… models"
	vars["OPENAI_API_KEY_FILE"] = "file with that key"
	vars["OPENAI_BASE_URL"] = "address of a server that speaks Chat Completions"
	return process.Usage("Usage: worker [health]\n\nRuns workflows and activities; health asks the one that runs whether it is ready.", vars)
}
