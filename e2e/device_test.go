package e2e_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// A login on another device, by a client that signs: the page shows the code, the server is killed while it polls, the person
// answers, and the run goes on. The key, the codes and the tokens stand nowhere.
func TestDeviceCodeThroughAKill(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	p, err := demo.NewProvider(demo.ProviderConfig{})
	require.NoError(t, err)
	require.NoError(t, p.Start("")) // reserves the address that the definition names
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	p.AddClient(demo.Client{ID: "tv", PublicKey: key.Public(), AuthMethod: demo.AuthPrivateKey})
	o := single(call("whoami") + text("{{response.whoami}}"))
	o.open, o.provider = false, p
	o.agents["assistant/root_agent.yaml"] += `      auth_credential:
        auth_type: oauth2
        oauth2:
          client_id: tv
          token_endpoint_auth_method: private_key_jwt
          private_key: ${env:TARRY_SECRET_KEY}
      tarry: {issuer: "` + p.Issuer() + `", grant: device_code}
`
	o.env = []string{"TARRY_SECRET_KEY=" + string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))}
	w := newWorld(t, o)
	const grantType = "urn:ietf:params:oauth:grant-type:device_code"

	r := w.api.start("assistant", "Who am I?")
	browser := demo.NewBrowser()
	link := w.waiting(r)
	page := w.visit(browser, link)
	require.Contains(t, page.Text, "You get a code to enter at")
	require.Empty(t, p.Secrets().DeviceCodes, "opening the page does nothing")
	page, err = browser.Press(t.Context(), page, "connect")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, page.Status)
	code := regexp.MustCompile(`UC-[A-Z0-9]{8}`).FindString(page.Text)
	require.NotEmpty(t, code, page.Text)
	require.Contains(t, page.Header.Get("Refresh"), "; url="+w.URL()+"/connect?request=")
	require.NotContains(t, page.Header.Get("Refresh"), code)

	w.eventually("nobody polls", func() bool { return p.Counts().Token[grantType] > 0 })
	require.NoError(t, w.Kill(stack.Server))
	require.True(t, p.DecideDevice(code, "alice", true), "answered while nobody polls")
	require.NoError(t, w.Start(t.Context(), stack.Server))
	s := w.finished(r)
	require.Equal(t, "done", s.InvocationStatus)
	require.Contains(t, s.Answer, "alice")
	require.Equal(t, 1, p.Counts().TokenOK[grantType])
	require.Len(t, p.Secrets().DeviceCodes, 1)
	require.NotContains(t, w.visit(browser, link).Body, code, "the code is gone from the page")

	p.RevokeAccessTokens()
	require.Contains(t, w.finished(w.api.start("assistant", "And now?")).Answer, "alice", "it refreshes")

	kept := map[string][]byte{"history": r.history()}
	keep := &recorder{next: http.DefaultTransport}
	for _, of := range []string{"", "/events", "/status"} {
		kept["GET "+of] = keep.get(t, w.URL()+r.path(of))
	}
	require.NoError(t, w.Stop(stack.All()...))
	maps.Copy(kept, w.stored())
	require.Contains(t, kept, w.LogFile(stack.Server))
	secrets := append(p.Secrets().All(), code, base64.StdEncoding.EncodeToString(der), strings.TrimRight(base64.StdEncoding.EncodeToString(der)[:60], "="))
	for where, body := range kept {
		for _, secret := range secrets {
			for _, form := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret))} {
				require.False(t, bytes.Contains(body, []byte(form)), "a secret stands in %s: …%s…", where, around(body, form))
			}
		}
	}
	require.Greater(t, len(kept), 6)
}
