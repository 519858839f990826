package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/internal/process"
	"tarry/server/web"
)

func TestLimitSettings(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rate, retention string
		want            web.Rates
		kept            time.Duration
		err             string
	}{
		"nothing":          {"", "", web.DefaultRates(), 720 * time.Hour, ""},
		"off":              {"0", "0", web.Rates{}, 0, ""},
		"some":             {"runs=5, tokens=0", "24h", web.Rates{web.Runs: 5, web.Logins: 600, web.SignIns: 600, web.Tokens: 0, web.Callbacks: 20, web.OpenStreams: 1000}, 24 * time.Hour, ""},
		"no kind":          {"5", "", nil, 0, `TARRY_RATE: "5" is not KIND=NUMBER, such as runs=600`},
		"unknown kind":     {"run=5", "", nil, 0, `TARRY_RATE: "run" is not one of runs, logins`},
		"less than none":   {"runs=-1", "", nil, 0, `TARRY_RATE: "runs=-1" is not KIND=NUMBER`},
		"no duration":      {"", "30d", nil, 0, `TARRY_RETENTION: "30d" is neither 0 nor a duration of at least 24h, such as 720h`},
		"shorter than day": {"", "1h", nil, 0, `TARRY_RETENTION: "1h"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vars := map[string]string{"TARRY_RATE": tc.rate, "TARRY_RETENTION": tc.retention}
			rates, kept, err := limits(process.Environment{Lookup: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }})
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, rates)
			require.Equal(t, tc.kept, kept)
		})
	}
}
