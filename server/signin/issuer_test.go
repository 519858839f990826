package signin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/server/signin"
)

// What an issuer says of itself leads browsers to web addresses alone, and us to no address inside.
func TestIssuersThatLeadAstray(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ authorization, keys string }{
		"script":        {"javascript:alert(1)//", "/keys"},
		"data":          {"data:text/html,x", "/keys"},
		"plain http":    {"http://login.example/authorize", "/keys"},
		"user in front": {"https://login.example@evil.example/authorize", "/keys"},
		"keys inside":   {"", "http://169.254.169.254/latest/meta-data"},
		"keys mapped":   {"", "http://[::ffff:10.0.0.1]/keys"},
		"huge keys":     {"", "/keys"},
		"keys moved":    {"", "/moved"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var issuer *httptest.Server
			issuer = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch r.URL.Path {
				case "/.well-known/openid-configuration":
					keys := tc.keys
					if strings.HasPrefix(keys, "/") {
						keys = issuer.URL + keys
					}
					authorization := tc.authorization
					if authorization == "" {
						authorization = issuer.URL + "/authorize"
					}
					_ = json.NewEncoder(w).Encode(map[string]any{"issuer": issuer.URL, "authorization_endpoint": authorization, "token_endpoint": issuer.URL + "/token", "jwks_uri": keys})
				case "/keys":
					_, _ = w.Write([]byte(`{"keys":[` + strings.Repeat(" ", 64<<20) + `]}`))
				case "/moved":
					http.Redirect(w, r, "http://169.254.169.254/keys", http.StatusFound)
				}
			}))
			t.Cleanup(issuer.Close)
			w := newWorld(t, func(c *signin.Config) {
				c.OIDC.Issuer, c.JWT.Issuers = issuer.URL, []string{issuer.URL}
			})
			if tc.authorization != "" {
				res := w.call(http.MethodGet, link, nil)
				require.Equal(t, http.StatusServiceUnavailable, res.status)
				require.Empty(t, res.header.Get("Location"))
				require.Empty(t, res.header.Values("Set-Cookie"))
				return
			}
			token, err := w.provider.Sign("at+jwt", map[string]any{"iss": issuer.URL, "sub": "x", "aud": audience, "jti": demo.DefaultMark})
			require.NoError(t, err)
			require.Contains(t, []int{http.StatusUnauthorized, http.StatusServiceUnavailable}, w.call(http.MethodGet, "/api", bearer(token)).status)
			require.NotContains(t, w.logs.String(), demo.DefaultMark)
		})
	}
}
