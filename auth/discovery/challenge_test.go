package discovery_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/auth/discovery"
)

func TestParseChallenges(t *testing.T) {
	t.Parallel()
	type challenge = discovery.Challenge
	type params = map[string]string
	for name, tc := range map[string]struct {
		in   []string
		want []challenge
	}{
		"none":              {nil, nil},
		"bare scheme":       {[]string{"Bearer"}, []challenge{{"bearer", params{}}}},
		"one":               {[]string{`Bearer realm="a, b", error=invalid_token`}, []challenge{{"bearer", params{"realm": "a, b", "error": "invalid_token"}}}},
		"escaped quote":     {[]string{`Bearer realm="a\"b"`}, []challenge{{"bearer", params{"realm": `a"b`}}}},
		"spaces around":     {[]string{`Bearer realm = "x" , scope = y`}, []challenge{{"bearer", params{"realm": "x", "scope": "y"}}}},
		"comma forgotten":   {[]string{`Bearer error="e" scope="a b"`}, []challenge{{"bearer", params{"error": "e", "scope": "a b"}}}},
		"two in one header": {[]string{`Basic realm="x", Bearer scope="y"`}, []challenge{{"basic", params{"realm": "x"}}, {"bearer", params{"scope": "y"}}}},
		"two headers":       {[]string{`Basic realm="x"`, `BEARER SCOPE=y`}, []challenge{{"basic", params{"realm": "x"}}, {"bearer", params{"scope": "y"}}}},
		"token68 first":     {[]string{`Negotiate abc==, Bearer scope=y`}, []challenge{{"negotiate", params{}}, {"bearer", params{"scope": "y"}}}},
		"bare then bearer":  {[]string{`Negotiate, Bearer scope=y`}, []challenge{{"negotiate", params{}}, {"bearer", params{"scope": "y"}}}},
		"first one counts":  {[]string{`Bearer scope=a, scope=b`}, []challenge{{"bearer", params{"scope": "a"}}}},
		"unterminated":      {[]string{`Bearer scope="a`, `Bearer scope=b`}, []challenge{{"bearer", params{}}, {"bearer", params{"scope": "b"}}}},
		"garbage":           {[]string{`"; ,,,{}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := discovery.ParseChallenges(tc.in)
			for i := range got {
				delete(got[i].Params, "")
			}
			require.Equal(t, tc.want, got)
		})
	}
}

func TestScopesAreCleaned(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"a", "b"}, discovery.Scopes(" a  b a \"x\" \\ "))
	require.Empty(t, discovery.Scopes(""))
}

func FuzzParseChallenges(f *testing.F) {
	for _, s := range []string{`Bearer realm="x", error="insufficient_scope", scope="a b"`, `Negotiate abc==, Basic`, `a="b`, `,,= =`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for _, c := range discovery.ParseChallenges([]string{header, `Bearer x=y`}) {
			require.NotEmpty(t, c.Scheme)
			require.LessOrEqual(t, len(c.Params), 64)
		}
		b, _ := discovery.BearerChallenge([]string{header})
		for _, s := range b.Scopes {
			require.NotContains(t, s, " ")
			require.NotContains(t, s, `"`)
		}
	})
}

// Scopes that a server wants are stored and shown; what is longer than a name of a scope may be a token.
func TestLongScopesAreNotNeeded(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("s", 128)
	b, ok := discovery.BearerChallenge([]string{`Bearer scope="` + name + " x" + name + ` read"`})
	require.True(t, ok)
	require.Equal(t, []string{name, "read"}, b.Scopes)
}
