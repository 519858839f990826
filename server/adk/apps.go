package adk

import (
	"fmt"
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

type appInfo struct {
	Name          string `json:"name"`
	RootAgentName string `json:"rootAgentName"`
	Description   string `json:"description"`
	Language      string `json:"language"`
	IsComputerUse bool   `json:"isComputerUse"`
}

func (h *Handler) listApps(w http.ResponseWriter, r *http.Request) {
	definitions, err := h.Apps.Apps(r.Context())
	if err != nil {
		h.fail(w, r, fmt.Errorf("list apps: %w", err))
		return
	}
	names, infos := []string{}, []appInfo{}
	for _, d := range definitions {
		names = append(names, d.App)
		infos = append(infos, appInfo{Name: d.App, RootAgentName: d.Root.Name, Description: d.Root.Description, Language: "yaml"})
	}
	if r.URL.Query().Get("detailed") == "true" {
		web.JSON(w, http.StatusOK, map[string]any{"apps": infos})
		return
	}
	web.JSON(w, http.StatusOK, names)
}
