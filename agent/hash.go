package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Hash names the definition by its content: equal definitions have equal hashes in every process. A run is pinned to
// the hash it was started with.
func (d *Definition) Hash() (string, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return "", fmt.Errorf("hash definition of %s: %w", d.App, err)
	}
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:16]), nil
}

// Find returns the agent called name, or nil.
func (d *Definition) Find(name string) *Agent {
	return d.Root.find(name)
}

func (a *Agent) find(name string) *Agent {
	if a == nil || a.Name == name {
		return a
	}
	for child := range a.below() {
		if found := child.find(name); found != nil {
			return found
		}
	}
	return nil
}

// ModelOf returns the model of the agent called name: its own, or that of its nearest ancestor. Empty means none.
func (d *Definition) ModelOf(name string) string {
	model, _ := modelOf(d.Root, name, "")
	return model
}

func modelOf(a *Agent, name, inherited string) (string, bool) {
	if a == nil {
		return "", false
	}
	if a.Model != "" {
		inherited = a.Model
	}
	if a.Name == name {
		return inherited, true
	}
	for child := range a.below() {
		if model, ok := modelOf(child, name, inherited); ok {
			return model, true
		}
	}
	return "", false
}

// Toolset returns the MCP toolset called name, or nil.
func (d *Definition) Toolset(name string) *MCPToolset {
	for a := range d.All() {
		for _, tool := range a.Tools {
			if tool.MCP != nil && tool.MCP.Name == name {
				return tool.MCP
			}
		}
	}
	return nil
}
