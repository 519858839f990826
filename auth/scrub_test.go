package auth_test

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth"
)

func TestScrub(t *testing.T) {
	t.Parallel()
	const secret = "s+cr/t=value&more"
	var s auth.Scrubber
	require.Equal(t, "untouched", s.Scrub("untouched"))
	s.Add(auth.NewSecret(secret))
	s.Add(auth.NewSecret(secret + "-and-more"))
	s.Add(auth.NewSecret("short"))
	s.Add(auth.Secret{})
	for _, form := range []string{
		secret, secret + "-and-more", url.QueryEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
	} {
		require.Equal(t, "a [secret] b", s.Scrub("a "+form+" b"))
	}
	require.Equal(t, "short words stay", s.Scrub("short words stay"))
}

func TestScrubValue(t *testing.T) {
	t.Parallel()
	var s auth.Scrubber
	s.Add(auth.NewSecret(canary))
	in := map[string]any{
		"echo": "Bearer " + canary, canary: 1.5,
		"deep": []any{map[string]any{"x": []any{canary, true, nil}}},
	}
	require.Equal(t, map[string]any{
		"echo": "Bearer [secret]", "[secret]": 1.5,
		"deep": []any{map[string]any{"x": []any{"[secret]", true, nil}}},
	}, s.ScrubValue(in))
	require.Contains(t, in, canary, "the value that came in stays as it is")
}

func TestScrubberIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var s auth.Scrubber
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			secret := fmt.Sprintf("secret-number-%d", i)
			s.Add(auth.NewSecret(secret))
			require.Equal(t, "[secret]", s.Scrub(secret))
		})
	}
	wg.Wait()
}

func ExampleScrubber() {
	var s auth.Scrubber
	s.Add(auth.NewSecret("ya29.token"))
	fmt.Println(s.Scrub("HTTP 500: your token is ya29.token"))
	// Output: HTTP 500: your token is [secret]
}
