package adk

import (
	"errors"
	"fmt"
	"net/http"

	"tarry/agent"
	"tarry/server/web"
	"tarry/session"
)

// language is what ADK calls definitions that are files and not programs.
const language = "yaml"

// appInfo is ADK's AppInfo.
type appInfo struct {
	Name          string `json:"name"`
	RootAgentName string `json:"rootAgentName"`
	Description   string `json:"description"`
	Language      string `json:"language"`
	IsComputerUse bool   `json:"isComputerUse"`
	// Agents are left out of lists.
	Agents map[string]agentInfo `json:"agents,omitempty"`
}

// agentInfo is ADK's AgentInfo, which spells its keys with underscores.
type agentInfo struct {
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Instruction string     `json:"instruction"`
	Tools       []toolInfo `json:"tools"`
	SubAgents   []string   `json:"sub_agents"`
}

type toolInfo struct {
	Declarations []declaration `json:"functionDeclarations"`
}

// declaration has no more than a name: what arguments a tool takes is known to workers and to the servers that offer it.
type declaration struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

func infoOf(d *agent.Definition) appInfo {
	return appInfo{Name: d.App, RootAgentName: d.Root.Name, Description: d.Root.Description, Language: language}
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
		infos = append(infos, infoOf(d))
	}
	if r.URL.Query().Get("detailed") == "true" {
		web.JSON(w, http.StatusOK, map[string]any{"apps": infos})
		return
	}
	web.JSON(w, http.StatusOK, names)
}

// app is the current definition of the app in the path.
func (h *Handler) app(r *http.Request) (*agent.Definition, error) {
	app := r.PathValue("app")
	if agent.CheckID("app", app) != nil {
		return nil, noApp(app)
	}
	d, err := h.Apps.App(r.Context(), app)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, noApp(app)
	case err != nil:
		return nil, fmt.Errorf("find app: %w", err)
	}
	return d, nil
}

func noApp(app string) error {
	return notFound("app %s is not published by any worker; GET /list-apps names those that are", brief(app))
}

// getAppInfo describes all agents of an app. ADK answers 400 where the root is no LlmAgent.
func (h *Handler) getAppInfo(w http.ResponseWriter, r *http.Request) {
	d, err := h.app(r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	out := infoOf(d)
	out.Agents = map[string]agentInfo{}
	for a := range d.All() {
		info := agentInfo{Name: a.Name, Description: a.Description, Instruction: h.instruction(r, a), Tools: []toolInfo{}, SubAgents: []string{}}
		for _, child := range a.SubAgents {
			info.SubAgents = append(info.SubAgents, child.Name)
		}
		for _, tool := range toolsOf(a) {
			if !tool.set {
				info.Tools = append(info.Tools, toolInfo{[]declaration{{Name: tool.name, Description: tool.description}}})
			}
		}
		out.Agents[a.Name] = info
	}
	web.JSON(w, http.StatusOK, out)
}

// instruction is the prompt of an agent, for those who may have written it.
func (h *Handler) instruction(r *http.Request, a *agent.Agent) string {
	if h.Operator == nil || !h.Operator(r) {
		return ""
	}
	return a.Instruction
}

// tool is what an agent's definition says of one tool. set says that it stands for all tools of a server.
type tool struct {
	name, description string
	agent             *agent.Agent
	set               bool
}

// toolsOf lists an agent's tools by the names that a model has for them. What a server offers is known where its toolset is
// filtered; of others the toolset's name is all that a definition says.
func toolsOf(a *agent.Agent) (out []tool) {
	for _, t := range a.Tools {
		switch {
		case t.Builtin != "":
			out = append(out, tool{name: t.Builtin})
		case t.Function != "":
			out = append(out, tool{name: t.Function})
		case t.Agent != nil:
			out = append(out, tool{name: t.Agent.Agent.Name, description: t.Agent.Agent.Description, agent: t.Agent.Agent})
		case t.MCP != nil && len(t.MCP.Filter) == 0:
			out = append(out, tool{name: t.MCP.Name, set: true})
		case t.MCP != nil:
			for _, name := range t.MCP.Filter {
				if t.MCP.NamePrefix != "" {
					name = t.MCP.NamePrefix + "_" + name
				}
				out = append(out, tool{name: name})
			}
		}
	}
	return out
}
