package adk

import (
	"net/http"
	"strings"

	"tarry/agent"
	"tarry/server/web"
	"tarry/session"
)

// drawn is ADK's GetEventGraphResult; empty where there is nothing to draw.
type drawn struct {
	DotSrc string `json:"dotSrc,omitempty"`
}

// node is an agent of build_graph, as ADK writes its own: with underscores, and what does not apply left out.
type node struct {
	Name          string     `json:"name"`
	Type          string     `json:"type"`
	AgentClass    string     `json:"agent_class"`
	Description   string     `json:"description"`
	Model         string     `json:"model,omitempty"`
	Instruction   string     `json:"instruction,omitempty"`
	OutputKey     string     `json:"output_key,omitempty"`
	MaxIterations int        `json:"max_iterations,omitempty"`
	Tools         []nodeTool `json:"tools"`
	SubAgents     []node     `json:"sub_agents"`
}

type nodeTool struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// buildGraph answers with the tree of an app's agents.
func (h *Handler) buildGraph(w http.ResponseWriter, r *http.Request) {
	d, err := h.app(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	web.JSON(w, http.StatusOK, struct {
		Name string `json:"name"`
		Root node   `json:"root_agent"`
	}{d.App, h.node(r, d, d.Root)})
}

func (h *Handler) node(r *http.Request, d *agent.Definition, a *agent.Agent) node {
	out := node{
		Name: a.Name, Type: "agent", AgentClass: string(a.Kind), Description: a.Description, Model: d.ModelOf(a.Name), Instruction: h.instruction(r, a),
		OutputKey: a.OutputKey, MaxIterations: a.MaxIterations, Tools: []nodeTool{}, SubAgents: []node{},
	}
	for _, t := range toolsOf(a) {
		kind := "tool"
		if t.set {
			kind = "toolset"
		}
		out.Tools = append(out.Tools, nodeTool{t.name, kind})
	}
	for _, child := range a.SubAgents {
		out.SubAgents = append(out.SubAgents, h.node(r, d, child))
	}
	return out
}

// buildGraphImage answers with drawings: under "" of the whole tree, and under its path of each agent that has others below it.
// Query node picks a path.
func (h *Handler) buildGraphImage(w http.ResponseWriter, r *http.Request) {
	d, err := h.app(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	at, path := d.Root, strings.Trim(r.URL.Query().Get("node"), "/")
	if path != "" {
		if at = down(d.Root, path); at == nil {
			h.fail(w, r, notFound("there is no agent at node %q; paths are names of agents below the root, with slashes", brief(path)))
			return
		}
	}
	out := map[string]drawn{}
	draw(out, at, path, dark(r))
	web.JSON(w, http.StatusOK, out)
}

func draw(out map[string]drawn, a *agent.Agent, path string, dark bool) {
	out[path] = drawn{dot(a, dark)}
	for _, child := range a.SubAgents {
		if len(child.SubAgents) > 0 {
			draw(out, child, strings.TrimPrefix(path+"/"+child.Name, "/"), dark)
		}
	}
}

// down goes from the root along the names of sub-agents; the root's own may come first.
func down(a *agent.Agent, path string) *agent.Agent {
	for i, name := range strings.Split(path, "/") {
		if i == 0 && name == a.Name {
			continue
		}
		var next *agent.Agent
		for _, child := range a.SubAgents {
			if child.Name == name {
				next = child
			}
		}
		if next == nil {
			return nil
		}
		a = next
	}
	return a
}

func dark(r *http.Request) bool {
	switch strings.ToLower(r.URL.Query().Get("dark_mode")) {
	case "true", "1", "yes", "on":
		return true
	}
	return false
}

// appGraph answers with one drawing of the whole tree.
func (h *Handler) appGraph(w http.ResponseWriter, r *http.Request) {
	d, err := h.app(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	web.JSON(w, http.StatusOK, drawn{dot(d.Root, dark(r))})
}

// eventGraph answers with the tree and what an event does in it; with nothing for an event that the session does not have.
func (h *Handler) eventGraph(w http.ResponseWriter, r *http.Request) {
	out, err := h.drawEvent(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	web.JSON(w, http.StatusOK, out)
}

func (h *Handler) drawEvent(r *http.Request) (drawn, error) {
	owner, err := h.owner(r)
	if err != nil {
		return drawn{}, err
	}
	id := r.PathValue("session")
	row, err := h.session(r.Context(), owner, id)
	if err != nil {
		return drawn{}, err
	}
	ids := []string{r.PathValue("event")}
	if agent.CheckID("event", ids[0]) != nil {
		ids = []string{} // there is none
	}
	found, err := h.Log.Events(r.Context(), row, ids)
	if err != nil {
		return drawn{}, noSession(err, id)
	}
	d, err := h.pinned(r.Context(), row)
	if err != nil || d == nil || len(found) == 0 {
		return drawn{}, err
	}
	return drawn{dot(d.Root, false, pairs(found[0])...)}, nil
}

// pairs is what an event does: an agent calls, or is answered by, tools, or speaks.
func pairs(r *session.Record) (out [][2]string) {
	for _, call := range r.Calls() {
		out = append(out, [2]string{r.Author, call.Name})
	}
	if len(out) > 0 {
		return out
	}
	for _, response := range r.Responses() {
		out = append(out, [2]string{response.Name, r.Author})
	}
	if len(out) > 0 {
		return out
	}
	return [][2]string{{r.Author, ""}}
}
