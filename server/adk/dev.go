package adk

import (
	"net/http"

	"tarry/server/web"
)

// mountDev adds what ADK's development server has besides its API, below /dev and, where it was there in 2025, without. Its web
// UI asks for all of it. Definitions are published by workers and evaluations belong to ADK: lists of those are empty, and what
// would change them is refused.
func (h *Handler) mountDev(mux *http.ServeMux) {
	const app = "/dev/apps/{app}"
	const old = "/apps/{app}"
	const event = "/users/{user}/sessions/{session}/events/{event}/graph"
	mux.HandleFunc("GET "+app+"/build_graph", h.buildGraph)
	mux.HandleFunc("GET "+app+"/build_graph_image", h.buildGraphImage)
	mux.HandleFunc("GET "+app+"/graph", h.appGraph)
	mux.HandleFunc("GET "+app+event, h.eventGraph)
	mux.HandleFunc("GET "+old+event, h.eventGraph)
	mux.HandleFunc("GET "+app+"/debug/trace/{event}", h.eventTrace)
	mux.HandleFunc("GET /debug/trace/{event}", h.eventTrace)
	mux.HandleFunc("GET "+app+"/debug/trace/session/{session}", h.sessionTrace)
	mux.HandleFunc("GET /debug/trace/session/{session}", h.sessionTrace)
	mux.HandleFunc("GET /config/telemetry", telemetry)
	mux.HandleFunc("POST /config/telemetry", telemetry)
	h.mountEmpty(mux)
	h.mountRefused(mux)
}

// mountEmpty adds lists in which nothing is.
func (h *Handler) mountEmpty(mux *http.ServeMux) {
	const app = "/dev/apps/{app}"
	const old = "/apps/{app}"
	list := h.fixed([]string{})
	mux.HandleFunc("GET "+app+"/builder", h.noFile)
	mux.HandleFunc("GET /builder/app/{app}", h.noFile)
	mux.HandleFunc("GET "+app+"/tests", list)
	mux.HandleFunc("GET "+app+"/eval_sets", list)
	mux.HandleFunc("GET "+old+"/eval_sets", list)
	mux.HandleFunc("GET "+app+"/eval_results", list)
	mux.HandleFunc("GET "+old+"/eval_results", list)
	mux.HandleFunc("GET "+app+"/eval-sets", h.fixed(map[string]any{"evalSetIds": []string{}}))
	mux.HandleFunc("GET "+old+"/eval-sets", h.fixed(map[string]any{"evalSetIds": []string{}}))
	mux.HandleFunc("GET "+app+"/eval-results", h.fixed(map[string]any{"evalResultIds": []string{}}))
	mux.HandleFunc("GET "+old+"/eval-results", h.fixed(map[string]any{"evalResultIds": []string{}}))
	mux.HandleFunc("GET "+app+"/metrics-info", h.fixed(map[string]any{"metricsInfo": []string{}}))
	mux.HandleFunc("GET "+old+"/metrics-info", h.fixed(map[string]any{"metricsInfo": []string{}}))
	mux.HandleFunc("GET "+app+"/tests/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+app+"/eval_sets/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+old+"/eval_sets/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+app+"/eval_results/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+old+"/eval_results/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+app+"/eval-sets/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+old+"/eval-sets/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+app+"/eval-results/{rest...}", h.noSuch)
	mux.HandleFunc("GET "+old+"/eval-results/{rest...}", h.noSuch)
}

// mountRefused adds what Tarry does not offer.
func (h *Handler) mountRefused(mux *http.ServeMux) {
	const app = "/dev/apps/{app}"
	const old = "/apps/{app}"
	const evaluations = "evaluations are not offered; run them with ADK against this server"
	const definitions = "definitions are not edited here; a worker publishes those in its TARRY_AGENTS_DIR"
	no := refused(evaluations)
	mux.HandleFunc("POST "+app+"/eval_sets/{rest...}", no)
	mux.HandleFunc("POST "+old+"/eval_sets/{rest...}", no)
	mux.HandleFunc("PUT "+app+"/eval_sets/{rest...}", no)
	mux.HandleFunc("PUT "+old+"/eval_sets/{rest...}", no)
	mux.HandleFunc("DELETE "+app+"/eval_sets/{rest...}", no)
	mux.HandleFunc("DELETE "+old+"/eval_sets/{rest...}", no)
	mux.HandleFunc("POST "+app+"/eval-sets", no)
	mux.HandleFunc("POST "+old+"/eval-sets", no)
	mux.HandleFunc("POST "+app+"/eval-sets/{rest...}", no)
	mux.HandleFunc("POST "+old+"/eval-sets/{rest...}", no)
	mux.HandleFunc("PUT "+app+"/eval-sets/{rest...}", no)
	mux.HandleFunc("PUT "+old+"/eval-sets/{rest...}", no)
	mux.HandleFunc("DELETE "+app+"/eval-sets/{rest...}", no)
	mux.HandleFunc("DELETE "+old+"/eval-sets/{rest...}", no)
	mux.HandleFunc("POST "+app+"/tests/{rest...}", no)
	mux.HandleFunc("PUT "+app+"/tests/{rest...}", no)
	mux.HandleFunc("DELETE "+app+"/tests/{rest...}", no)
	mux.HandleFunc("POST "+app+"/builder/save", refused(definitions))
	mux.HandleFunc("POST "+app+"/builder/cancel", refused(definitions))
	mux.HandleFunc("POST /builder/save", refused(definitions))
	mux.HandleFunc("POST /agent-identity/finalize", refused("logins by Google's Agent Identity are not offered; a definition asks for logins with auth_scheme"))
	mux.HandleFunc("GET /run_live", refused("audio and video by WebSocket (run_live) are not offered; POST /run_sse streams text"))
}

func refused(why string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		web.Error(w, r, http.StatusNotImplemented, why)
	}
}

// fixed answers the same for every app that there is.
func (h *Handler) fixed(v any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.app(r); err != nil {
			h.fail(w, r, err)
			return
		}
		web.JSON(w, http.StatusOK, v)
	}
}

func (h *Handler) noSuch(w http.ResponseWriter, r *http.Request) {
	h.fail(w, r, notFound("there is none: tests and evaluations are not offered"))
}

// noFile answers with an empty file, which tells ADK's web UI that the app cannot be edited.
func (h *Handler) noFile(w http.ResponseWriter, r *http.Request) {
	if _, err := h.app(r); err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
}

// telemetry says that the web UI may not report to its makers, so that it does not ask anybody. Nobody can change that from there.
func telemetry(w http.ResponseWriter, _ *http.Request) {
	web.JSON(w, http.StatusOK, map[string]bool{"telemetry": false})
}
