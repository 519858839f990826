package e2e_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/internal/demo"
)

// P34: a client of ADK answers the request for an API key, a password or a bearer token with it, in every way in which clients
// write one down; the run goes on with it, and no key stands anywhere in the clear. What it was asked with has authUri, so that
// the web UI opens the page as well.
func TestADKKeyVariants(t *testing.T) {
	t.Parallel()
	o := options{open: true, agents: map[string]string{}, script: "agents:\n"}
	servers := map[string]*demo.KeyServer{}
	for _, k := range keyKinds() {
		servers[k.name] = keyServer(t, k.server)
		servers[k.name].Accept("ann", demo.DefaultMark+"key-of-"+k.name)
		o.agents[k.name+"/root_agent.yaml"] = keyAgent(k.name, servers[k.name].URL(), k.scheme, "")
		o.script += k.steps()
	}
	w := newWorld(t, o)
	var runs []runHandle
	for _, k := range keyKinds() {
		secret := demo.DefaultMark + "key-of-" + k.name
		fill := func(exchanged map[string]any) {
			switch k.name {
			case "basic":
				exchanged["http"].(map[string]any)["credentials"] = map[string]any{"username": "ann", "password": secret}
			case "bearer":
				exchanged["http"].(map[string]any)["credentials"] = map[string]any{"token": secret}
			default:
				exchanged["apiKey"] = secret
			}
		}
		for name, response := range map[string]func(config, exchanged map[string]any) any{
			"config":     func(config, _ map[string]any) any { return config },
			"snake case": func(config, _ map[string]any) any { return snake(config) },
			"credential": func(_, exchanged map[string]any) any { delete(exchanged, "oauth2"); return exchanged },
			"result":     func(config, _ map[string]any) any { return map[string]any{"result": config} },
			"JSON text":  func(config, _ map[string]any) any { return map[string]any{"response": asJSON(config)} },
		} {
			s := w.adkSessionOf(k.name, k.name+"-"+name[:2]) // a person each, so that each is asked
			f := s.requested(s.say("Who am I?"))[0]
			config, oauth := f.config()
			require.NotEmpty(t, oauth["authUri"], k.name)
			exchanged := config["exchangedAuthCredential"].(map[string]any)
			fill(exchanged)
			status, got := s.c.sse(s.body(nil, answering(f, response(config, exchanged))), false)
			require.Equal(t, http.StatusOK, status, "%s, %s", k.name, name)
			ids(t, got)
			require.Contains(t, got[len(got)-1].Content.Parts[0].Text, "you are ann", "%s, %s", k.name, name)
			w.checkAnswers(s.events(), k.name+", "+name)
			runs = append(runs, s.runHandle)
		}
	}
	w.checkTyped(runs...)
}
