package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestQuantiles(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		took        []time.Duration
		half, ninth time.Duration
	}{
		{nil, 0, 0},
		{[]time.Duration{7}, 7, 7},
		{[]time.Duration{3, 1}, 1, 3},
		{[]time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, 5, 9},
	} {
		var s session
		for _, d := range tc.took {
			s.turns = append(s.turns, turn{took: d})
		}
		require.Equal(t, tc.half, s.quantile(half, step), tc.took)
		require.Equal(t, tc.ninth, s.quantile(most, step), tc.took)
	}
}

func TestResultOfALength(t *testing.T) {
	t.Parallel()
	var p pooled
	p.turns = 2
	p.tarry.pool(session{turns: []turn{{events: 12, bytes: 1500, took: 20 * time.Millisecond}}, split: 1})
	p.tarry.pool(session{turns: []turn{{events: 13, bytes: 1501, took: 30 * time.Millisecond}}, repeated: 2})
	p.bare.pool(session{turns: []turn{{events: 12, took: 16 * time.Millisecond}}})
	r := p.result()
	require.Equal(t, result{N: 2, EventsPerTurn: 12.5, BytesPerTurn: 1500.5, StepMsP50: 20, BareStepMsP50: 16}, r)
	require.InDelta(t, 1.25, r.ratio(), 1e-9)
	require.Equal(t, 1, p.tarry.split)
	require.Equal(t, 2, p.tarry.repeated)
	require.Equal(t, 5*time.Millisecond, rest(turn{took: 9 * time.Millisecond, model: 3 * time.Millisecond, tool: time.Millisecond}))
}

func TestTargets(t *testing.T) {
	t.Parallel()
	good := func() []result {
		return []result{{10, 12, 1500, 25, 20}, {1000, 12, 1570, 26, 21}}
	}
	for name, tc := range map[string]struct {
		change func([]result)
		missed string
		counts bool
	}{
		"all met":       {func([]result) {}, "", true},
		"events":        {func(r []result) { r[0].EventsPerTurn, r[1].EventsPerTurn = 12.01, 12.01 }, "events a turn, at most 12", false},
		"bytes":         {func(r []result) { r[0].BytesPerTurn, r[1].BytesPerTurn = 1639, 1639 }, "bytes a turn, at most 1638", false},
		"bytes grow":    {func(r []result) { r[0].BytesPerTurn = 1400 }, "bytes a turn, 1000 turns against 10: +12.1 %", false},
		"events shrink": {func(r []result) { r[1].EventsPerTurn = 11 }, "events a turn, 1000 turns against 10: -8.3 %", false},
		"slow":          {func(r []result) { r[0].StepMsP50, r[1].StepMsP50 = 25.2, 26 }, "10 turns: a step takes 1.26", true},
		"slower":        {func(r []result) { r[0].StepMsP50, r[1].StepMsP50 = 23, 26 }, "time a turn over the bare one's, 1000 turns against 10: +7.7 %", true},
		"both slower":   {func(r []result) { r[1].StepMsP50, r[1].BareStepMsP50 = 32, 26 }, "", true},
		"faster":        {func(r []result) { r[1].StepMsP50 = 22 }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := good()
			tc.change(r)
			var out strings.Builder
			require.Equal(t, tc.counts, tell(&out, judge(r)))
			if tc.missed == "" {
				require.NotContains(t, out.String(), "MISSED")
				return
			}
			require.Regexp(t, `(?m)^MISSED .*`+strings.ReplaceAll(tc.missed, "+", `\+`), out.String())
		})
	}
	require.Len(t, judge(good()[:1]), 3)
}

func TestFileOfResults(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "results.json")
	require.NoError(t, write(path, results{[]result{{10, 12, 1500.5, 25.25, 20}}}))
	body, err := os.ReadFile(path)
	require.NoError(t, err)
	require.JSONEq(t, `{"turns":[{"n":10,"events_per_turn":12,"bytes_per_turn":1500.5,"step_ms_p50":25.25,"bare_step_ms_p50":20}]}`, string(body))
}

func TestLengths(t *testing.T) {
	t.Parallel()
	sizes, err := parseSizes("10x8,1000x2")
	require.NoError(t, err)
	require.Equal(t, []size{{10, 8}, {1000, 2}}, sizes)
	require.Equal(t, "10x8,1000x2", sizeList(sizes))
	for _, bad := range []string{"", "10", "10x", "1x1", "10x0", "300x1", "10x8,"} {
		_, err := parseSizes(bad)
		require.Error(t, err, bad)
	}
}
