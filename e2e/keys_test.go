package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
	"tarry/internal/stack"
)

// keyKind is one way in which a server wants its key.
type keyKind struct {
	name   string
	server demo.KeyConfig
	scheme string // auth_scheme, as YAML
	event  string // authScheme, as ADK's clients get it
}

func keyKinds() []keyKind {
	return []keyKind{
		{"header", demo.KeyConfig{In: "header", Name: "X-Api-Key"}, "{type: apiKey, in: header, name: X-Api-Key}", `{"type":"apiKey","in":"header","name":"X-Api-Key"}`},
		{"query", demo.KeyConfig{In: "query", Name: "api_key"}, "{type: apiKey, in: query, name: api_key}", `{"type":"apiKey","in":"query","name":"api_key"}`},
		{"cookie", demo.KeyConfig{In: "cookie", Name: "sid"}, "{type: apiKey, in: cookie, name: sid}", `{"type":"apiKey","in":"cookie","name":"sid"}`},
		{"basic", demo.KeyConfig{Scheme: "basic"}, "{type: http, scheme: basic}", `{"type":"http","scheme":"basic"}`},
		{"bearer", demo.KeyConfig{Scheme: "bearer"}, "{type: http, scheme: bearer}", `{"type":"http","scheme":"bearer"}`},
	}
}

// keyAgent is the root agent of an app whose tools want a key.
func keyAgent(name, address, scheme, more string) string {
	return fmt.Sprintf(`name: %s
model: ${var:MODEL}
instruction: Help.
tools:
  - name: McpToolset
    args:
      streamable_http_connection_params: {url: %q}
      auth_scheme: %s
%s`, name, address, scheme, more)
}

// keyServer runs until the test ends.
func keyServer(t *testing.T, cfg demo.KeyConfig) *demo.KeyServer {
	t.Helper()
	s := demo.NewKeyServer(cfg)
	require.NoError(t, s.Start(""))
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// give types a key in on the page behind a link, in a browser of its own.
func (w *world) give(link, user, secret string) *demo.Page {
	w.t.Helper()
	b := demo.NewBrowser()
	page, err := b.Open(w.t.Context(), link)
	require.NoError(w.t, err)
	require.Len(w.t, page.Forms, 1, page.Text)
	fields := map[string]string{"key": secret}
	if _, ok := page.Forms[0].Types["username"]; ok {
		fields["username"] = user
	}
	page, err = b.Submit(w.t.Context(), page, page.Forms[0], fields, page.Forms[0].Button("accept"))
	require.NoError(w.t, err)
	require.NotContains(w.t, page.Text, demo.DefaultMark)
	return page
}

// asksAgain waits until a run asks under another id than before.
func (w *world) asksAgain(r runHandle, before string) (request, link string) {
	w.t.Helper()
	w.eventually("the run does not ask again", func() bool {
		for _, open := range r.status().WaitingFor {
			if open.Request != before {
				request, link = open.Request, open.Link
			}
		}
		return link != ""
	})
	return request, link
}

func (k keyKind) steps() string {
	return "  - agent: " + k.name + "\n    steps:\n" + indent(call("whoami")+call("leak")+text("{{response.whoami}}"), "      ")
}

// A person types a key in on the connect page, for each way in which a server wants one: a wrong key is asked for again, the
// right one is sent to the server, the run goes on, and the next run asks nobody. The worker is killed while it waits. No key
// stands anywhere in the clear.
func TestKeysFromThePage(t *testing.T) {
	t.Parallel()
	o := options{open: true, agents: map[string]string{}, script: "agents:\n"}
	servers := map[string]*demo.KeyServer{}
	secret := func(k keyKind) string { return demo.DefaultMark + "key-of-" + k.name }
	for _, k := range keyKinds() {
		servers[k.name] = keyServer(t, k.server)
		o.agents[k.name+"/root_agent.yaml"] = keyAgent(k.name, servers[k.name].URL(), k.scheme, "")
		o.script += k.steps()
	}
	w := newWorld(t, o)
	var runs []runHandle
	first := map[string]string{}
	for _, k := range keyKinds() {
		servers[k.name].Accept("ann", secret(k))
		r := w.api.start(k.name, "Who am I?")
		w.waiting(r)
		first[k.name] = r.status().WaitingFor[0].Request
		runs = append(runs, r)
	}
	require.NoError(t, w.Kill(stack.Worker))
	for i, k := range keyKinds() {
		open := runs[i].status().WaitingFor[0]
		require.Equal(t, "key", open.Kind)
		require.Empty(t, servers[k.name].Requests(), "nothing is sent before there is a key")
		args := asked(t, runs[i].events())
		scheme, err := json.Marshal(args["authScheme"])
		require.NoError(t, err)
		require.JSONEq(t, k.event, string(scheme))
		page, err := w.open(open.Link)
		require.NoError(t, err)
		require.Contains(t, page.Text, strings.TrimPrefix(strings.TrimSuffix(servers[k.name].URL(), "/mcp"), "http://"))
		require.Contains(t, page.Text, k.name)
		require.True(t, page.Forms[0].HasType("password"))
		require.Equal(t, "Saved", w.give(open.Link, "ann", demo.DefaultMark+"wrong-"+k.name).Title)
	}
	require.NoError(t, w.Start(t.Context(), stack.Worker))
	for i, k := range keyKinds() {
		_, link := w.asksAgain(runs[i], first[k.name])
		page, err := w.open(link)
		require.NoError(t, err)
		require.Contains(t, page.Text, "did not accept")
		require.Equal(t, "Saved", w.give(link, "ann", secret(k)).Title)
		s := w.finished(runs[i])
		require.Equal(t, "done", s.InvocationStatus)
		require.Contains(t, s.Answer, "you are ann")
		again := w.api.start(k.name, "And now?")
		require.Contains(t, w.finished(again).Answer, "you are ann")
		require.Empty(t, asks(again.events()))
		for _, q := range servers[k.name].Requests() {
			require.NotEmpty(t, q.Secret, "no request goes without the key")
		}
		runs = append(runs, again)
	}
	w.checkTyped(runs...)
}

// asked is the authConfig of a session's last request for a credential.
func asked(t *testing.T, events []event) (config map[string]any) {
	t.Helper()
	for _, e := range events {
		for _, p := range e.Content.Parts {
			if p.FunctionCall != nil && p.FunctionCall.Name == "adk_request_credential" {
				config, _ = p.FunctionCall.Args["authConfig"].(map[string]any)
			}
		}
	}
	require.NotNil(t, config)
	return config
}

// checkTyped looks for the mark of all keys in everything that is kept or was answered.
func (w *world) checkTyped(runs ...runHandle) {
	w.t.Helper()
	kept := map[string][]byte{}
	keep := &recorder{http.DefaultTransport}
	for _, r := range runs {
		kept["history of "+r.id] = r.history()
		for _, of := range []string{"", "/events", "/status"} {
			kept["GET "+r.path(of)] = keep.get(w.t, w.URL()+r.path(of))
		}
		kept["GET /logins"+r.user] = keep.get(w.t, w.URL()+"/logins?all=true&user="+url.QueryEscape(r.user))
	}
	w.checkMark(kept)
}

// checkMark stops everything and looks for the mark in what was kept, in every form in which a secret comes back.
func (w *world) checkMark(kept map[string][]byte) {
	w.t.Helper()
	require.NoError(w.t, w.Stop(stack.All()...))
	maps.Copy(kept, w.stored())
	journal, err := os.ReadFile(w.journal())
	require.NoError(w.t, err)
	kept[w.journal()] = journal
	require.Contains(w.t, kept, w.LogFile(stack.Worker))
	require.Contains(w.t, kept, w.journal())
	for where, body := range kept {
		require.False(w.t, bytes.Contains(body, []byte(demo.DefaultMark)), "a key stands in %s: …%s…", where, around(body, demo.DefaultMark))
		for _, word := range regexp.MustCompile(`[A-Za-z0-9+/_-]{12,}`).FindAll(body, -1) {
			if plain, err := base64.RawStdEncoding.DecodeString(string(word)); err == nil {
				require.False(w.t, bytes.Contains(plain, []byte(demo.DefaultMark)), "a key stands in %s in base64", where)
			}
		}
	}
}
