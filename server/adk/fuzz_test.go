package adk_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/adk"
)

// FuzzReply: whatever a client answers, a field of a credential that holds something is refused wherever it stands, what is
// said about it repeats nothing, and the same answer gets the same verdict.
func FuzzReply(f *testing.F) {
	issued := map[string]any{"functionCallId": "c1", "authConfig": map[string]any{
		"credentialKey":           "k",
		"authScheme":              map[string]any{"type": "oauth2", "flows": map[string]any{"authorizationCode": map[string]any{"tokenUrl": "https://as.example/token"}}},
		"rawAuthCredential":       map[string]any{"authType": "oauth2", "oauth2": map[string]any{"clientId": "id"}},
		"exchangedAuthCredential": map[string]any{"authType": "oauth2", "oauth2": map[string]any{"authUri": "https://tarry.example/connect?request=r", "state": "C", "clientId": "id"}},
	}}
	for _, seed := range []string{
		`"done"`, `null`, `[]`, `{}`, `{"result":"ok"}`, `{"result":"{\"oauth2\":{\"access_token\":\"x\"}}"}`,
		`{"exchanged_auth_credential":{"auth_type":"oauth2","oauth2":{"auth_uri":"https://tarry.example/connect?request=r","state":"C","auth_response_uri":"https://tarry.example/dev-ui/?code=tarry-ticket-x&state=C"}}}`,
		`{"authScheme":{"flows":{"authorizationCode":{"tokenUrl":"https://evil.example/"}}}}`, `{"a":{"b":{"accessToken":"x"}}}`,
		`"see https://evil.example/?code=x&state=C"`, `{"oauth2":{"clientSecret":["x"]}}`, `{"http":{"credentials":{"token":"x"}}}`,
	} {
		f.Add([]byte(seed))
	}
	h := &adk.Handler{PublicURL: "https://tarry.example"}
	f.Fuzz(func(t *testing.T, body []byte) {
		var response any
		if json.Unmarshal(body, &response) != nil {
			return
		}
		problem := adk.CheckReply(h, response, issued, "C")
		require.Equal(t, problem == "", adk.CheckReply(h, response, issued, "C") == "", "one answer, one verdict")
		for _, value := range allTexts(response, nil) {
			if len(value) > 12 {
				require.NotContains(t, problem, value)
			}
		}
		if carries(response) {
			require.NotEmpty(t, problem)
		}
	})
}

// allTexts lists the strings in a JSON value that are no keys.
func allTexts(v any, out []string) []string {
	switch v := v.(type) {
	case string:
		return append(out, v)
	case []any:
		for _, one := range v {
			out = allTexts(one, out)
		}
	case map[string]any:
		for _, one := range v {
			out = allTexts(one, out)
		}
	}
	return out
}

// carries says whether objects in objects hold a secret of a credential.
func carries(v any) bool {
	m, ok := v.(map[string]any)
	if !ok {
		return false
	}
	for key, value := range m {
		switch strings.ReplaceAll(key, "_", "") {
		case "accessToken", "accesstoken", "refreshToken", "refreshtoken", "clientSecret", "clientsecret", "authCode", "authcode":
			if s, ok := value.(string); ok && s != "" && (strings.Contains(key, "_") || key != strings.ToLower(key)) {
				return true
			}
		}
		if carries(value) {
			return true
		}
	}
	return false
}
