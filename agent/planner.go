package agent

import "encoding/json"

// Planner makes a model plan before it acts.
type Planner struct {
	Kind PlannerKind `json:"kind"`
	// ThinkingConfig is genai's thinking configuration as camelCase JSON; only of [PlannerBuiltIn].
	ThinkingConfig json.RawMessage `json:"thinking_config,omitempty"`
}

// PlannerKind is a planner of ADK.
type PlannerKind string

// The planners.
const (
	// PlannerBuiltIn is the model's own thinking.
	PlannerBuiltIn PlannerKind = "BuiltInPlanner"
	// PlannerPlanReAct is for models that do not think by themselves: they are told to write plan, reasoning and answer
	// under tags, and what is not the answer is kept as a thought.
	PlannerPlanReAct PlannerKind = "PlanReActPlanner"
)
