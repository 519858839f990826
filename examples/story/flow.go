package main

import (
	"errors"

	"tarry/workflows"
)

// storyFlow is the story flow of ADK's documentation as a custom agent: write a story, let a critic and a reviser improve it,
// check it, and write it anew when its tone is wrong. In the middle it reads the house's style guide, for which a person must
// log in. It has no code for crashes, deploys or the wait: it is called again, and what it had done returns at once.
func storyFlow(a *workflows.Agent) error {
	if _, err := a.Run("story_generator"); err != nil {
		return err
	}
	// The run waits here, for weeks if it must, with nothing running.
	var refused *workflows.ToolError
	switch err := a.Call("read_style_guide", map[string]any{"language": "en"}, nil); {
	case errors.As(err, &refused):
		if err := a.Emit(workflows.Emission{Text: "I go on without the style guide."}); err != nil {
			return err
		}
	case err != nil:
		return err
	}
	for range 2 {
		if _, err := a.Run("critic_reviser"); err != nil { // a LoopAgent
			return err
		}
		if _, err := a.Run("post_processing"); err != nil { // a SequentialAgent
			return err
		}
		var tone string
		if _, err := a.State("tone", &tone); err != nil {
			return err
		}
		if tone != "negative" {
			return nil
		}
		if _, err := a.Run("story_generator"); err != nil {
			return err
		}
	}
	return a.Emit(workflows.Emission{Text: "The story is still sad; I leave it at that."})
}
