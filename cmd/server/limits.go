package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"tarry/internal/process"
	"tarry/server/web"
)

const leastRetention = 24 * time.Hour

// limitVariables are those of bounds, with what they mean.
func limitVariables() map[string]string {
	return map[string]string{
		"TARRY_RATE":          "what one caller may do in a minute: KIND=NUMBER, separated by commas, of runs, logins, signins, tokens, callbacks; and streams, how many may be open at once (default " + web.DefaultRates().String() + "); 0: no limit",
		"TARRY_ALLOW_ORIGINS": "further origins whose pages may call the API, separated by commas: http://localhost:4200, or regex: and a pattern of whole origins",
		"TARRY_RETENTION":     "how long rows stay that nobody needs any more: a duration of at least 24h (default 720h), or 0 for ever",
	}
}

// limits reads them.
func limits(e process.Environment) (web.Rates, time.Duration, error) {
	rates, errs := web.DefaultRates(), []error{}
	switch text := e.Get("TARRY_RATE", ""); text {
	case "":
	case "0":
		rates = web.Rates{}
	default:
		for part := range strings.SplitSeq(text, ",") {
			if err := setRate(rates, part); err != nil {
				errs = append(errs, fmt.Errorf("TARRY_RATE: %w", err))
			}
		}
	}
	text := e.Get("TARRY_RETENTION", "720h")
	kept, err := time.ParseDuration(text)
	if err != nil || kept != 0 && kept < leastRetention {
		errs = append(errs, fmt.Errorf("TARRY_RETENTION: %q is neither 0 nor a duration of at least 24h, such as 720h", text))
	}
	return rates, kept, errors.Join(errs...)
}

func setRate(rates web.Rates, part string) error {
	kind, number, ok := strings.Cut(strings.TrimSpace(part), "=")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 0 {
		return fmt.Errorf("%q is not KIND=NUMBER, such as runs=600; 0 means no limit", part)
	}
	if _, known := web.DefaultRates()[web.Kind(kind)]; !known {
		return fmt.Errorf("%q is not one of runs, logins, signins, tokens, callbacks, streams", kind)
	}
	rates[web.Kind(kind)] = n
	return nil
}
