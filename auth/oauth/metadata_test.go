package oauth_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/auth"
	"tarry/auth/oauth"
)

const documentURL = "https://tarry.example/oauth/client-metadata.json"

// documented is a world whose service has a metadata document.
func documented(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.service = w.newService(func(c *oauth.Config) { c.ClientMetadataURL = documentURL })
	w.provider.clients[documentURL] = ""
	return w
}

var takesDocuments = map[string]any{"client_id_metadata_document_supported": true}

// Pre-registered, then the metadata document, then registration (MCP authorization, "Client Registration Approaches").
func TestOrderOfClients(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		supported, registration, ours bool
		id                            string
		source, says                  string
	}{
		"in the definition":            {supported: true, registration: true, ours: true, id: "client", source: "pre:client"},
		"metadata document":            {supported: true, registration: true, ours: true, source: "metadata"},
		"metadata document only":       {supported: true, ours: true, source: "metadata"},
		"provider takes none":          {registration: true, ours: true, source: "dynamic"},
		"we have none":                 {supported: true, registration: true, source: "dynamic"},
		"we have none and must":        {supported: true, says: "TARRY_CLIENT_METADATA_URL an https address"},
		"neither is taken":             {ours: true, says: "register Tarry there by hand and put its client_id into the definition"},
		"neither, and in a definition": {id: "client", source: "pre:client"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if tc.ours {
				w = documented(t)
			}
			w.provider.noRegistration = !tc.registration
			w.provider.metadata = map[string]any{"client_id_metadata_document_supported": tc.supported}
			want := w.mcpWant()
			want.Auth.ClientID = tc.id
			err := w.broker().Challenged(t.Context(), want, unauthorized(0))
			if tc.says != "" {
				require.ErrorIs(t, err, auth.ErrMisconfigured)
				require.ErrorContains(t, err, tc.says)
				return
			}
			require.Equal(t, tc.source, required(t, err).Slot.Client)
		})
	}
}

func TestLoginWithTheMetadataDocument(t *testing.T) {
	t.Parallel()
	w := documented(t)
	w.provider.metadata = takesDocuments
	want := w.mcpWant()
	w.login(want)
	w.pass(2 * time.Hour)
	_, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.Empty(t, w.provider.register)
	require.Len(t, w.provider.tokenRequests(), 2)
	for i, form := range w.provider.tokenRequests() {
		require.Equal(t, documentURL, form.Get("client_id"))
		require.False(t, form.Has("client_secret"))
		require.Empty(t, w.provider.auths[i], "one way to authenticate: none")
	}
	// The server may have no document although the worker has.
	w.ask("R", required(t, w.broker().Challenged(t.Context(), want, unauthorized(9))))
	_, err = w.newService().Begin(t.Context(), only(ann), "R", "")
	require.ErrorContains(t, err, "set TARRY_CLIENT_METADATA_URL for both")
}

// A provider that begins to take metadata documents does not end the logins that were made before.
func TestProviderThatChangesWhatItTakes(t *testing.T) {
	t.Parallel()
	w := documented(t)
	want := w.mcpWant()
	w.login(want)
	w.provider.set(func(p *provider) { p.metadata = takesDocuments })
	w.pass(2 * time.Hour)
	token, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.Len(t, refreshes(w.provider), 1)

	more := auth.Challenge{Status: 403, Used: token.Version, WWWAuthenticate: []string{`Bearer error="insufficient_scope", scope="write"`}}
	n := required(t, w.broker().Challenged(t.Context(), want, more))
	require.Equal(t, "metadata", n.Slot.Client)
	require.Equal(t, []string{"read", "write"}, n.Scopes, "what the app was granted is asked for again")
	w.ask("R", n)
	_, err = w.service.Complete(t.Context(), only(ann), w.callback("R"))
	require.NoError(t, err)
	next, err := w.broker().Token(t.Context(), want)
	require.NoError(t, err)
	require.NotEqual(t, token.Access.Reveal(), next.Access.Reveal(), "the newest login counts")
}

func TestMetadataDocument(t *testing.T) {
	t.Parallel()
	w := documented(t)
	body, err := w.service.MetadataDocument(t.Context())
	require.NoError(t, err)
	require.JSONEq(t, `{
		"client_id": "https://tarry.example/oauth/client-metadata.json", "client_name": "Tarry",
		"redirect_uris": [], "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
		"application_type": "native", "token_endpoint_auth_method": "none"
	}`, string(body))

	for i := range 200 {
		w.store.callbacks = append(w.store.callbacks, fmt.Sprintf("%016d", i))
	}
	body, err = w.service.MetadataDocument(t.Context())
	require.NoError(t, err)
	require.Less(t, len(body), 5<<10)
	var d struct {
		URIs []string `json:"redirect_uris"`
	}
	require.NoError(t, json.Unmarshal(body, &d))
	require.Greater(t, len(d.URIs), 50)
	require.Equal(t, "http://localhost:8080/oauth/callback/0000000000000000", d.URIs[0], "those that were used last are there")

	body, err = newWorld(t).service.MetadataDocument(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(body), `"client_id":"http://localhost:8080/oauth/client-metadata.json"`)

	body, err = w.newService(func(c *oauth.Config) { c.PublicURL = &url.URL{Scheme: "https", Host: "tarry.example"} }).MetadataDocument(t.Context())
	require.NoError(t, err)
	require.Contains(t, string(body), `"client_uri":"https://tarry.example"`)
}

func TestMetadataURL(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		configured, public string
		loopback           bool
		want, says         string
	}{
		"default":              {public: "https://tarry.example", want: documentURL},
		"default below a path": {public: "https://x.example/tarry/", want: "https://x.example/tarry/oauth/client-metadata.json"},
		"http":                 {public: "http://localhost:8080"},
		"off":                  {configured: "none", public: "https://tarry.example"},
		"elsewhere":            {configured: "https://cdn.example/tarry.json", public: "http://localhost:8080", want: "https://cdn.example/tarry.json"},
		"plain":                {configured: "http://cdn.example/tarry.json", says: "is not an https URL"},
		"loopback":             {configured: "http://127.0.0.1:1/c", says: "is not an https URL"},
		"loopback allowed":     {configured: "http://127.0.0.1:1/c", loopback: true, want: "http://127.0.0.1:1/c"},
		"no path":              {configured: "https://cdn.example/", says: "must have a path"},
		"dots":                 {configured: "https://cdn.example/a/../b", says: "must have a path, without dot segments"},
		"query":                {configured: "https://cdn.example/a?b", says: "has a user name, query or fragment"},
		"fragment":             {configured: "https://cdn.example/a#", says: "has a user name, query or fragment"},
		"password":             {configured: "https://u:hunter2@cdn.example/a", says: "has a user name, query or fragment"},
		"no URL":               {configured: "cdn.example/a", says: "is not an https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			public, err := url.Parse(tc.public)
			require.NoError(t, err)
			got, err := oauth.MetadataURL(tc.configured, public, tc.loopback)
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				require.NotContains(t, err.Error(), "hunter2")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, got)
		})
	}
}
