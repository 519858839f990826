package oauth_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/internal/safehttp"
)

// google is its token endpoint for service accounts.
type google struct {
	*httptest.Server
	asked  atomic.Int64
	answer atomic.Pointer[func(w http.ResponseWriter)]
}

const account = "nightly@project.example"

// atGoogle is a world with a service account, and where its tokens come from. change edits the key's file.
func atGoogle(t *testing.T, change func(key map[string]any)) (*world, *google, string) {
	t.Helper()
	private := rsaKey(t, 2048)
	gcp := &google{}
	gcp.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := gcp.asked.Add(1)
		if answer := gcp.answer.Load(); answer != nil {
			(*answer)(w)
			return
		}
		token, err := jwt.ParseSigned(r.PostFormValue("assertion"), []jose.SignatureAlgorithm{jose.RS256})
		var claims struct {
			jwt.Claims
			Scope  string `json:"scope"`
			Target string `json:"target_audience"`
		}
		if err != nil || token.Claims(private.Public(), &claims) != nil || r.PostFormValue("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" ||
			claims.Issuer != account || !claims.Audience.Contains(gcp.URL+"/token") || token.Headers[0].KeyID != "key-1" {
			writeJSON(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant", "error_description": r.PostFormValue("assertion")})
			return
		}
		if claims.Target == "" {
			writeJSON(w, http.StatusOK, map[string]any{"access_token": "ya29-" + claims.Scope + random(), "token_type": "Bearer", "expires_in": 3600})
			return
		}
		signer, _ := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: private}, nil)
		id, _ := jwt.Signed(signer).Claims(map[string]any{"aud": claims.Target, "n": n, "exp": time.Now().Add(time.Hour).Unix()}).Serialize()
		writeJSON(w, http.StatusOK, map[string]any{"id_token": id})
	}))
	t.Cleanup(gcp.Close)
	file := map[string]any{
		"type": "service_account", "client_email": account, "private_key_id": "key-1", "private_key": pkcs8(t, private), "token_uri": gcp.URL + "/token",
	}
	if change != nil {
		change(file)
	}
	raw, err := json.Marshal(file)
	require.NoError(t, err)
	w := newWorld(t)
	w.clock = time.Now()
	guarded := safehttp.New(safehttp.Config{AllowLoopback: true})
	t.Cleanup(guarded.CloseIdleConnections)
	w.service = w.newService(func(cfg *oauth.Config) {
		cfg.HTTP = guarded.HTTP()
		cfg.Secrets = func(context.Context, agent.Source) (auth.Secret, error) { return auth.NewSecret(string(raw)), nil }
	})
	return w, gcp, string(raw)
}

func accountWant(server string) auth.Want {
	return auth.Want{Server: server, Tool: "tool", Auth: agent.Auth{
		Key: "gcp", Type: agent.AuthServiceAccount, ServiceAccount: "${file:gcp.json}", Scopes: []string{"https://www.googleapis.com/auth/drive"},
	}}
}

func TestServiceAccount(t *testing.T) {
	t.Parallel()
	w, gcp, _ := atGoogle(t, nil)
	want := accountWant("https://mcp.example/mcp")
	token, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err, "nobody is asked")
	require.True(t, strings.HasPrefix(token.Access.Reveal(), "ya29-https://www.googleapis.com/auth/drive"))
	again, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.Equal(t, token.Access.Reveal(), again.Access.Reveal())
	require.EqualValues(t, 1, gcp.asked.Load(), "it is kept")

	w.pass(time.Hour - 30*time.Second)
	next, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.NotEqual(t, token.Access.Reveal(), next.Access.Reveal(), "and replaced when it is due")

	_, err = w.broker().Token(t.Context(), accountWant("https://other.example/mcp"))
	require.NoError(t, err)
	require.EqualValues(t, 3, gcp.asked.Load(), "another server gets a token of its own")

	b := w.broker()
	require.NoError(t, b.Challenged(t.Context(), want, unauthorized(next.Version)), "one new token after a refusal")
	want.Refused = next.Version
	fresh, err := b.Token(t.Context(), want)
	require.NoError(t, err)
	require.ErrorIs(t, b.Challenged(t.Context(), want, unauthorized(fresh.Version)), auth.ErrMisconfigured)
}

func TestServiceAccountIDToken(t *testing.T) {
	t.Parallel()
	w, gcp, _ := atGoogle(t, nil)
	want := accountWant("https://run.example/mcp")
	want.Auth.Scopes, want.Auth.UseIDToken, want.Auth.Audience = nil, true, "https://run.example"
	token, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	parsed, err := jwt.ParseSigned(token.Access.Reveal(), []jose.SignatureAlgorithm{jose.RS256})
	require.NoError(t, err)
	var claims jwt.Claims
	require.NoError(t, parsed.UnsafeClaimsWithoutVerification(&claims))
	require.Equal(t, jwt.Audience{"https://run.example"}, claims.Audience)
	require.InDelta(t, time.Hour.Seconds(), token.Expires.Sub(w.now()).Seconds(), 5)

	other := want
	other.Auth.Audience = "https://other.example"
	second, err := w.broker().Token(t.Context(), other)
	require.NoError(t, err)
	require.NotEqual(t, token.Access.Reveal(), second.Access.Reveal(), "an audience is a credential of its own")
	_, err = w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.EqualValues(t, 2, gcp.asked.Load())
}

func TestServiceAccountThatGetsNothing(t *testing.T) {
	t.Parallel()
	answers := func(status int, body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, tc := range map[string]struct {
		change func(key map[string]any)
		answer func(http.ResponseWriter)
		err    error
		says   string
	}{
		"private address": {change: func(k map[string]any) { k["token_uri"] = "https://10.0.0.1/token" }, err: auth.ErrMisconfigured, says: "10.0.0.1"},
		"metadata server": {change: func(k map[string]any) { k["token_uri"] = "http://169.254.169.254/token" }, err: auth.ErrMisconfigured, says: "169.254.169.254"},
		"plain http":      {change: func(k map[string]any) { k["token_uri"] = "http://token.example/" }, err: auth.ErrMisconfigured, says: "token.example"},
		"another kind":    {change: func(k map[string]any) { k["type"] = "authorized_user" }, err: auth.ErrMisconfigured, says: "type service_account"},
		"no account":      {change: func(k map[string]any) { delete(k, "client_email") }, err: auth.ErrMisconfigured, says: "type service_account"},
		"broken key":      {change: func(k map[string]any) { k["private_key"] = "canary-0123456789" }, err: auth.ErrMisconfigured, says: "is neither PEM"},
		"disabled":        {answer: answers(400, `{"error":"invalid_grant","error_description":"canary-0123456789"}`), err: auth.ErrMisconfigured, says: "(invalid_grant)"},
		"echo":            {answer: answers(401, `canary-0123456789`), err: auth.ErrMisconfigured, says: "(unrecognized)"},
		"outage":          {answer: answers(503, `canary-0123456789`), err: auth.ErrUnavailable},
		"no answer":       {answer: func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, err: auth.ErrUnavailable},
		"no token":        {answer: answers(200, `{}`), err: auth.ErrMisconfigured, says: "no token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, gcp, raw := atGoogle(t, tc.change)
			if tc.answer != nil {
				gcp.answer.Store(&tc.answer)
			}
			_, err := w.broker().Token(t.Context(), accountWant("https://mcp.example/mcp"))
			require.ErrorIs(t, err, tc.err)
			require.ErrorContains(t, err, tc.says)
			var key struct {
				Private string `json:"private_key"`
			}
			require.NoError(t, json.Unmarshal([]byte(raw), &key))
			for _, secret := range []string{"canary-0123456789", key.Private, url.QueryEscape(key.Private)} {
				require.NotContains(t, err.Error()+w.logs.String(), secret)
			}
		})
	}
}
