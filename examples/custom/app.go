package main

import (
	"errors"
	"fmt"
	"net/http"

	"tarry"
	"tarry/agent"
	"tarry/models"
	"tarry/tools"
	"tarry/tools/function"
)

// service is where reports are, and where a person logs in to read them.
type service struct {
	URL          string
	AuthorizeURL string
	TokenURL     string
	ClientID     string
}

func serviceFromEnv(lookup func(string) (string, bool)) (s service, err error) {
	for name, field := range map[string]*string{
		"REPORTS_URL": &s.URL, "REPORTS_AUTHORIZE_URL": &s.AuthorizeURL, "REPORTS_TOKEN_URL": &s.TokenURL, "REPORTS_CLIENT_ID": &s.ClientID,
	} {
		if *field, _ = lookup(name); *field == "" {
			err = errors.Join(err, fmt.Errorf("%s is not set", name))
		}
	}
	return s, err
}

// newApp is the agent with everything it needs.
func newApp(s service, client *http.Client) (tarry.App, error) {
	read, err := function.NewCall("read_report", "Reads a report by its title.", (&reports{url: s.URL, http: client}).read,
		function.Credential(agent.Auth{
			Key: credentialKey, Type: agent.AuthOAuth2, AuthorizationURL: s.AuthorizeURL, TokenURL: s.TokenURL,
			Resource: s.URL, // what the token is for (RFC 8707), and where it is sent
			ClientID: s.ClientID, ClientAuth: "none", Scopes: []string{"tickets:read"},
		}),
		function.Idempotent()) // it only reads: safe to call again after a crash
	if err != nil {
		return tarry.App{}, fmt.Errorf("make tool: %w", err)
	}
	return tarry.App{
		Tools:  []tools.Tool{read},
		Models: map[string]models.Factory{"keyword": keywordFactory},
		Agents: []*agent.Definition{{App: "reports", Root: &agent.Agent{
			Name: "reporter", Kind: agent.KindLLM, Model: "keyword/v1",
			Instruction: "Answer from the report that the person asks for.",
			Tools:       []agent.Tool{{Function: "read_report"}},
		}}},
	}, nil
}
