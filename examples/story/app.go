package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"tarry"
	"tarry/agent"
	"tarry/auth"
	"tarry/models"
	"tarry/tools"
	"tarry/tools/function"
	"tarry/workflows"
)

// guides is where the style guide is, and where a person logs in to read it.
type guides struct {
	URL          string
	AuthorizeURL string
	TokenURL     string
	ClientID     string
}

func guidesFromEnv(lookup func(string) (string, bool)) (g guides, err error) {
	for name, field := range map[string]*string{
		"GUIDES_URL": &g.URL, "GUIDES_AUTHORIZE_URL": &g.AuthorizeURL, "GUIDES_TOKEN_URL": &g.TokenURL, "GUIDES_CLIENT_ID": &g.ClientID,
	} {
		if *field, _ = lookup(name); *field == "" {
			err = errors.Join(err, fmt.Errorf("%s is not set", name))
		}
	}
	return g, err
}

const credentialKey = "guides"

type wanted struct {
	Language string `json:"language" jsonschema:"language of the guide"`
}

// newApp is the tree of agents, with the function of the one that is custom.
func newApp(g guides, client *http.Client) (tarry.App, error) {
	read := func(ctx context.Context, in wanted) (string, error) {
		token, err := auth.Token(ctx, credentialKey)
		if err != nil {
			return "", err // where nobody has logged in yet, the run waits for the person
		}
		return g.read(ctx, client, in.Language, token)
	}
	guide, err := function.New("read_style_guide", "Reads the house's style guide.", read, function.Idempotent(),
		function.Credential(agent.Auth{
			Key: credentialKey, Type: agent.AuthOAuth2, AuthorizationURL: g.AuthorizeURL, TokenURL: g.TokenURL, Resource: g.URL,
			ClientID: g.ClientID, ClientAuth: "none", Scopes: []string{"tickets:read"},
		}))
	if err != nil {
		return tarry.App{}, fmt.Errorf("make tool: %w", err)
	}
	llm := func(name, instruction, outputKey string) *agent.Agent {
		return &agent.Agent{Name: name, Kind: agent.KindLLM, Instruction: instruction, OutputKey: outputKey}
	}
	return tarry.App{
		Tools:        []tools.Tool{guide},
		Models:       map[string]models.Factory{"rhyme": rhymeFactory},
		CustomAgents: workflows.Agents{"story_flow": storyFlow},
		Agents: []*agent.Definition{{App: "story", Root: &agent.Agent{
			Name: "story_flow", Kind: agent.KindCustom, Custom: "story_flow", Model: "rhyme/v1",
			Tools: []agent.Tool{{Function: "read_style_guide"}},
			SubAgents: []*agent.Agent{
				llm("story_generator", "Write a short story about {topic?}.", "story"),
				{Name: "critic_reviser", Kind: agent.KindLoop, MaxIterations: 2, SubAgents: []*agent.Agent{
					llm("critic", "Criticise this story in a sentence: {story}", "criticism"),
					llm("reviser", "Revise the story by the criticism: {story} {criticism}", "story"),
				}},
				{Name: "post_processing", Kind: agent.KindSequential, SubAgents: []*agent.Agent{
					llm("grammar_check", "Correct the grammar of: {story}", "grammar"),
					llm("tone_check", "Is the tone positive, negative or neutral? Answer in one word: {story}", "tone"),
				}},
			},
		}}},
	}, nil
}

func (g guides) read(ctx context.Context, client *http.Client, language string, token auth.AccessToken) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/"+language, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+token.Access.Reveal())
	resp, err := client.Do(req)
	if err != nil {
		return "", fmt.Errorf("read guide: %w: %w", tools.ErrUnknown, err) // idempotent: it is tried again
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", tools.Errorf("the service answered %d", resp.StatusCode)
	}
	text := make([]byte, 4<<10)
	n, _ := resp.Body.Read(text)
	return string(text[:n]), nil
}
