package adk

import (
	"net/http"
	"runtime"
	"strings"

	"tarry/server/web"
)

func (h *Handler) health(w http.ResponseWriter, _ *http.Request) {
	web.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

func (h *Handler) version(w http.ResponseWriter, _ *http.Request) {
	web.JSON(w, http.StatusOK, map[string]string{
		"version":          h.Version,
		"language":         "go",
		"language_version": strings.TrimPrefix(runtime.Version(), "go"),
	})
}
