package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

// Targets of a turn.
const (
	maxEvents = 12.0
	maxBytes  = 1638.0 // 1.6 KB
	maxGrowth = 0.05   // of the longest session's turns over the shortest one's
	maxRatio  = 1.25
)

// Shares of the turns.
const half, most = 0.5, 0.9

// results is the file of the results.
type results struct {
	Turns []result `json:"turns"`
}

// result is a line of it. Times are in milliseconds.
type result struct {
	N             int     `json:"n"`
	EventsPerTurn float64 `json:"events_per_turn"`
	BytesPerTurn  float64 `json:"bytes_per_turn"`
	StepMsP50     float64 `json:"step_ms_p50"`
	BareStepMsP50 float64 `json:"bare_step_ms_p50"`
}

func (r result) ratio() float64 { return r.StepMsP50 / r.BareStepMsP50 }

// pooled is what all runs of one length measured.
type pooled struct {
	size
	tarry, bare   session
	before, after string // load averages
}

func (s *session) pool(other session) {
	s.turns = append(s.turns, other.turns...)
	s.split += other.split
	s.repeated += other.repeated
}

func (s session) perTurn() (events, bytes float64) {
	for _, t := range s.turns {
		events += float64(t.events) / float64(len(s.turns))
		bytes += float64(t.bytes) / float64(len(s.turns))
	}
	return events, bytes
}

// quantile returns the time that a share of the turns does not exceed; of none it is zero.
func (s session) quantile(share float64, part func(turn) time.Duration) time.Duration {
	if len(s.turns) == 0 {
		return 0
	}
	took := make([]time.Duration, 0, len(s.turns))
	for _, t := range s.turns {
		took = append(took, part(t))
	}
	slices.Sort(took)
	return took[max(0, int(math.Ceil(share*float64(len(took))))-1)]
}

// The parts of a turn.
func step(t turn) time.Duration  { return t.took }
func model(t turn) time.Duration { return t.model }
func tool(t turn) time.Duration  { return t.tool }
func rest(t turn) time.Duration  { return t.took - t.model - t.tool }

func (p pooled) result() result {
	events, bytes := p.tarry.perTurn()
	return result{
		N: p.turns, EventsPerTurn: round(events), BytesPerTurn: round(bytes),
		StepMsP50: ms(p.tarry.quantile(half, step)), BareStepMsP50: ms(p.bare.quantile(half, step)),
	}
}

func ms(d time.Duration) float64  { return round(float64(d) / float64(time.Millisecond)) }
func round(v float64) float64     { return math.Round(v*100) / 100 }
func percent(v float64) string    { return fmt.Sprintf("%+.1f %%", 100*v) }
func growth(a, b float64) float64 { return b/a - 1 }

// verdict is whether one target is met.
type verdict struct {
	text string
	met  bool
	// count says that it is exact: not met, it is an error.
	count bool
}

// judge compares with the targets; results are sorted by length.
func judge(all []result) (out []verdict) {
	for _, r := range all {
		out = append(out,
			verdict{fmt.Sprintf("%d turns: %.2f events a turn, at most %.0f", r.N, r.EventsPerTurn, maxEvents), r.EventsPerTurn <= maxEvents, true},
			verdict{fmt.Sprintf("%d turns: %.0f bytes a turn, at most %.0f", r.N, r.BytesPerTurn, maxBytes), r.BytesPerTurn <= maxBytes, true},
			verdict{fmt.Sprintf("%d turns: a step takes %.2f of the bare one's time, at most %.2f", r.N, r.ratio(), maxRatio), r.ratio() <= maxRatio, false},
		)
	}
	if len(all) < 2 {
		return out
	}
	first, last := all[0], all[len(all)-1]
	for _, g := range []struct {
		what string
		by   float64
	}{
		{"events", growth(first.EventsPerTurn, last.EventsPerTurn)},
		{"bytes", growth(first.BytesPerTurn, last.BytesPerTurn)},
	} {
		text := fmt.Sprintf("%s a turn, %d turns against %d: %s, at most 5 %%", g.what, last.N, first.N, percent(g.by))
		out = append(out, verdict{text, math.Abs(g.by) <= maxGrowth, true})
	}
	// The bare one takes longer, too, the longer its history is: that is Temporal's.
	by := growth(first.ratio(), last.ratio())
	text := fmt.Sprintf("time a turn over the bare one's, %d turns against %d: %s, at most +5 %%; by itself %s", last.N, first.N, percent(by), percent(growth(first.StepMsP50, last.StepMsP50)))
	return append(out, verdict{text, by <= maxGrowth, false})
}

// table prints what was measured.
func table(out io.Writer, all []pooled) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "turns\truns\tevents/turn\tbytes/turn\tbare events\tbare bytes\tstep p50\tp90\tbare p50\tp90\tratio\tsplit\trepeated\tload\t")
	for _, p := range all {
		r := p.result()
		events, bytes := p.bare.perTurn()
		fmt.Fprintf(w, "%d\t%d\t%.2f\t%.0f\t%.2f\t%.0f\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f ms\t%.2f\t%d\t%d\t%s – %s\t\n", p.turns, p.rounds,
			r.EventsPerTurn, r.BytesPerTurn, events, bytes, r.StepMsP50, ms(p.tarry.quantile(most, step)), r.BareStepMsP50, ms(p.bare.quantile(most, step)), r.ratio(),
			p.tarry.split, p.tarry.repeated+p.bare.repeated, p.before, p.after)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	fmt.Fprintln(out)
	w = tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "p50 of a turn's parts\tmodel call\ttool call\trest\tbare model call\ttool call\trest\t")
	for _, p := range all {
		fmt.Fprintf(w, "%d turns\t", p.turns)
		for _, s := range []session{p.tarry, p.bare} {
			for _, part := range []func(turn) time.Duration{model, tool, rest} {
				fmt.Fprintf(w, "%.2f ms\t", ms(s.quantile(half, part)))
			}
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

// tell prints the verdicts and says whether all counts are met.
func tell(out io.Writer, all []verdict) (counts bool) {
	counts = true
	for _, v := range all {
		word := "met"
		if !v.met {
			word = "MISSED"
			counts = counts && !v.count
		}
		fmt.Fprintf(out, "%-6s  %s\n", word, v.text)
	}
	return counts
}

func write(path string, r results) error {
	body, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("encode results: %w", err)
	}
	if err := os.WriteFile(path, append(body, '\n'), 0o644); err != nil { //nolint:gosec // no secret
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
