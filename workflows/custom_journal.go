package workflows

import (
	"encoding/json"
	"fmt"

	"go.temporal.io/sdk/workflow"

	"tarry/wire"
)

// maxJournal is the longest journal that is carried as it is, in bytes of JSON; a payload of Temporal should stay below
// 64 KiB, and several agents may have one.
const maxJournal = 16 << 10

// keepJournals stores the long journals of all custom agents below a frame, and leaves their names in it.
func keepJournals(ctx workflow.Context, f *wire.Frame) error {
	if f == nil {
		return nil
	}
	if err := keepJournal(ctx, f); err != nil {
		return err
	}
	below := []*wire.Frame{f.Sub}
	for i := range f.Branches {
		below = append(below, &f.Branches[i].Frame)
	}
	for i := range f.Calls {
		below = append(below, f.Calls[i].Sub)
	}
	for _, b := range below {
		if err := keepJournals(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func keepJournal(ctx workflow.Context, f *wire.Frame) error {
	body, err := json.Marshal(f.Journal)
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	if len(body) <= maxJournal {
		return nil
	}
	out, err := callKeep(ctx, wire.KeepInput{Body: body})
	if err != nil {
		return err
	}
	f.Journal, f.Kept = nil, out.Kept
	return nil
}

// keptJournal brings a journal back that was kept.
func keptJournal(ctx workflow.Context, f *wire.Frame) error {
	if f.Kept == "" {
		return nil
	}
	var body []byte
	for part := 0; ; part++ {
		out, err := callKept(ctx, wire.KeptInput{Kept: f.Kept, Part: part})
		if err != nil {
			return err
		}
		if body = append(body, out.Body...); !out.More {
			break
		}
	}
	if err := json.Unmarshal(body, &f.Journal); err != nil {
		return fmt.Errorf("decode journal: %w", err)
	}
	f.Kept = ""
	return nil
}
