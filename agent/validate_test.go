package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"tarry/agent"
)

// planner is a valid definition: a loop of two agents, one with a toolset. Tests change their copy.
func planner() *agent.Definition {
	return &agent.Definition{App: "planner", Root: &agent.Agent{
		Name: "loop", Kind: agent.KindLoop, MaxIterations: 5, Model: "gemini/gemini-2.5-flash",
		SubAgents: []*agent.Agent{
			{
				Name: "planner", Kind: agent.KindLLM, Instruction: "Plan {topic}.", OutputKey: "plan",
				GenerateContentConfig: json.RawMessage(`{"temperature":0.1}`),
				Tools: []agent.Tool{{MCP: &agent.MCPToolset{
					Name: "tickets", Transport: agent.TransportStreamableHTTP, URL: "https://tickets.example/mcp",
					Headers: map[string]agent.SecretTemplate{"Authorization": "Bearer ${env:TARRY_SECRET_TICKETS}", "X-Team": "a"},
					Auth: &agent.Auth{
						Type: agent.AuthOAuth2, AuthorizationURL: "https://login.example/authorize", TokenURL: "https://login.example/token",
						ClientID: "tarry", ClientSecret: "${file:tickets}", Scopes: []string{"read"}, MaxScopes: []string{"read", "write"},
					},
				}}},
				Wait: agent.WaitPolicy{Deadline: 72 * time.Hour},
			},
			{Name: "reviewer", Kind: agent.KindLLM, Tools: []agent.Tool{{Builtin: agent.ExitLoop}, {Function: "notify"}}},
		},
	}}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, planner().Validate())
	tools := func(d *agent.Definition) *agent.MCPToolset { return d.Root.SubAgents[0].Tools[0].MCP }
	llm := func(d *agent.Definition) *agent.Agent { return d.Root.SubAgents[0] }
	stdio := func(d *agent.Definition) *agent.MCPToolset {
		*tools(d) = agent.MCPToolset{Name: "x", Transport: agent.TransportStdio, Command: "server"}
		return tools(d)
	}
	for name, tc := range map[string]struct {
		change func(d *agent.Definition)
		want   string // all errors, one a line
	}{
		"app":           {func(d *agent.Definition) { d.App = "a/b" }, `app: app id "a/b" contains a slash, a control character or invalid UTF-8`},
		"no root":       {func(d *agent.Definition) { d.Root = nil }, "root: the definition has no root agent"},
		"nil agent":     {func(d *agent.Definition) { d.Root.SubAgents[0] = nil }, `agent "loop": sub_agents[0]: there is no agent`},
		"no name":       {func(d *agent.Definition) { d.Root.SubAgents[1].Name = "" }, `agent "root.sub_agents[1]": name: "" is not an identifier (letters, digits, underscores, at most 64)`},
		"long name":     {func(d *agent.Definition) { llm(d).Name = strings.Repeat("a", 65) }, `agent "` + strings.Repeat("a", 65) + `": name: "` + strings.Repeat("a", 65) + `" is not an identifier (letters, digits, underscores, at most 64)`},
		"user":          {func(d *agent.Definition) { llm(d).Name = "user" }, `agent "user": name: "user" is the author of what people say; choose another name`},
		"same name":     {func(d *agent.Definition) { llm(d).Name = "reviewer" }, `agent "reviewer": name: used twice in the tree; each agent needs a name of its own`},
		"kind":          {func(d *agent.Definition) { llm(d).Kind = "X" }, `agent "planner": agent_class: "X" is not one of LlmAgent, LoopAgent, SequentialAgent, ParallelAgent, CustomAgent`},
		"no model":      {func(d *agent.Definition) { d.Root.Model = ""; d.Root.SubAgents[1].Model = "m" }, `agent "planner": model: missing; set it here or on a parent, for example gemini-2.5-flash`},
		"contents":      {func(d *agent.Definition) { llm(d).IncludeContents = "x" }, `agent "planner": include_contents: "x" is neither "default" nor "none"`},
		"iterations":    {func(d *agent.Definition) { llm(d).MaxIterations = 1 }, `agent "planner": max_iterations: only a LoopAgent has it`},
		"negative":      {func(d *agent.Definition) { d.Root.MaxIterations = -1 }, `agent "loop": max_iterations: -1 is negative; leave it out to loop until a tool exits`},
		"transfer":      {func(d *agent.Definition) { d.Root.DisallowTransferToPeers = true }, `agent "loop": disallow_transfer_to_peers: a LoopAgent calls no model and no tools; move it to a sub-agent`},
		"no function":   {func(d *agent.Definition) { d.Root.Kind, d.Root.MaxIterations = agent.KindCustom, 0 }, `agent "loop": custom: missing; name the registered function`},
		"custom's loop": {func(d *agent.Definition) { d.Root.Kind, d.Root.Custom = agent.KindCustom, "x" }, `agent "loop": max_iterations: only a LoopAgent has it`},
		"function":      {func(d *agent.Definition) { d.Root.Custom = "x" }, `agent "loop": custom: only a CustomAgent has a function`},
		"no agent tool": {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{Agent: &agent.AgentTool{}}} }, `agent "planner": tools[0]: there is no agent`},
		"agent tool's name": {func(d *agent.Definition) {
			llm(d).Tools = []agent.Tool{{Agent: &agent.AgentTool{Agent: &agent.Agent{Name: "planner", Kind: agent.KindLLM}}}}
		}, `agent "planner": name: used twice in the tree; each agent needs a name of its own`},
		"agent tool's tool": {func(d *agent.Definition) {
			llm(d).Tools = []agent.Tool{{Agent: &agent.AgentTool{Agent: &agent.Agent{Name: "a", Kind: agent.KindLLM, Tools: []agent.Tool{{}}}}}}
		}, `agent "a": tools[0]: name exactly one tool`},
		"no children":   {func(d *agent.Definition) { d.Root.SubAgents = nil }, `agent "loop": sub_agents: a LoopAgent needs at least one`},
		"sequence":      {func(d *agent.Definition) { d.Root.Kind = agent.KindSequential }, `agent "loop": max_iterations: only a LoopAgent has it`},
		"loop's prompt": {func(d *agent.Definition) { d.Root.Instruction = "x" }, `agent "loop": instruction: a LoopAgent calls no model; move it to a sub-agent`},
		"loop's static": {func(d *agent.Definition) { d.Root.StaticInstruction = "x" }, `agent "loop": static_instruction: a LoopAgent calls no model and no tools; move it to a sub-agent`},
		"global":        {func(d *agent.Definition) { d.Root.GlobalInstruction = "x {y}" }, ""},
		"global below":  {func(d *agent.Definition) { llm(d).GlobalInstruction = "x" }, `agent "planner": global_instruction: only the root agent has it; move it there, or into instruction`},
		"loop's tools":  {func(d *agent.Definition) { d.Root.Tools = []agent.Tool{{}} }, `agent "loop": tools: a LoopAgent calls no tools; move them to a sub-agent`},
		"loop's wait":   {func(d *agent.Definition) { d.Root.Wait.Deadline = 1 }, `agent "loop": deadline: a LoopAgent calls no model and no tools; move it to a sub-agent`},
		"deadline":      {func(d *agent.Definition) { llm(d).Wait.Deadline = -time.Second }, `agent "planner": deadline: -1s is negative; use 0 for no deadline`},
		"remind fast":   {func(d *agent.Definition) { llm(d).Wait.Remind = time.Millisecond }, `agent "planner": remind: 1ms is less than 1s; use a longer time, or 0 for no reminders`},
		"remind late":   {func(d *agent.Definition) { llm(d).Wait.Remind = 72 * time.Hour }, `agent "planner": remind: 72h0m0s is not shorter than the deadline of 72h0m0s, so nobody would be reminded; use a shorter time`},
		"on deadline":   {func(d *agent.Definition) { llm(d).Wait.OnDeadline = "x" }, `agent "planner": on_deadline: "x" is neither "deny" nor "fail"`},
		"no deadline":   {func(d *agent.Definition) { llm(d).Wait = agent.WaitPolicy{OnDeadline: agent.DeadlineFail} }, `agent "planner": on_deadline: "fail" has no effect without a deadline; set one`},
		"loop's other waits": {
			func(d *agent.Definition) {
				d.Root.Wait = agent.WaitPolicy{OnDeadline: agent.DeadlineDeny, Remind: time.Hour}
			},
			"agent \"loop\": on_deadline: a LoopAgent calls no model and no tools; move it to a sub-agent\nagent \"loop\": remind: a LoopAgent calls no model and no tools; move it to a sub-agent",
		},
		"policies": {func(d *agent.Definition) {
			llm(d).Wait = agent.WaitPolicy{Deadline: time.Hour, OnDeadline: agent.DeadlineFail, Remind: time.Second}
			d.Root.OnMessage, d.Root.Limits = agent.MessageInterrupt, agent.Limits{ModelCalls: 1, Session: agent.SessionLimits{Tokens: 1}}
		}, ""},
		"on message":       {func(d *agent.Definition) { d.Root.OnMessage = "x" }, `agent "loop": on_message: "x" is neither "queue" nor "interrupt"`},
		"on message below": {func(d *agent.Definition) { llm(d).OnMessage = agent.MessageInterrupt }, `agent "planner": on_message: only the root agent has it; move it there`},
		"limits below":     {func(d *agent.Definition) { llm(d).Limits.Tokens = 1 }, `agent "planner": limits: only the root agent has them, since they bound the whole tree; move them there`},
		"limits": {
			func(d *agent.Definition) {
				d.Root.Limits = agent.Limits{Tokens: -1, Session: agent.SessionLimits{Duration: -1}}
			},
			"agent \"loop\": limits.tokens: -1 is negative; leave it out for no limit of this kind\nagent \"loop\": limits.session.duration: -1ns is negative; leave it out for no limit of this kind",
		},
		"config":    {func(d *agent.Definition) { llm(d).GenerateContentConfig = json.RawMessage("[]") }, `agent "planner": generate_content_config: not a JSON object`},
		"no tool":   {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{}} }, `agent "planner": tools[0]: name exactly one tool`},
		"two tools": {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{Builtin: "exit_loop", Function: "f"}} }, `agent "planner": tools[0]: name exactly one tool`},
		"built in":  {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{Builtin: "x"}} }, `agent "planner": tools[0]: there is no built-in tool "x"; there are exit_loop, request_input, load_artifacts, load_memory, preload_memory`},
		"not a function": {func(d *agent.Definition) {
			llm(d).Tools = []agent.Tool{{Builtin: "request_input", LongRunning: true}}
		}, `agent "planner": tools[0]: only a function can be long-running; name one`},
		"reserved": {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{Function: agent.RequestCredential}} }, `agent "planner": tools[0]: "adk_request_credential" is a reserved name`},
		"twice":    {func(d *agent.Definition) { llm(d).Tools = []agent.Tool{{Function: "f"}, {Function: "f"}} }, `agent "planner": tools[1]: f is there twice; remove one`},

		"toolset name": {func(d *agent.Definition) { tools(d).Name = "A.b" }, `agent "planner": tools[0]: toolset name "A.b" must be lower case letters, digits and underscores`},
		"same connect tool": {func(d *agent.Definition) {
			tools(d).Lazy = true
			llm(d).Tools = append(llm(d).Tools, agent.Tool{MCP: &agent.MCPToolset{Name: "y", NamePrefix: "tickets", Lazy: true, Transport: agent.TransportStdio, Command: "server"}})
		}, `agent "planner": tools[1].tool_name_prefix: "tickets" is that of another lazy toolset, and tickets_connect can connect one only`},
		"same toolset":      {func(d *agent.Definition) { llm(d).Tools = append(llm(d).Tools, llm(d).Tools[0]) }, `agent "planner": tools[1]: toolset name "tickets" is used twice`},
		"prefix":            {func(d *agent.Definition) { tools(d).NamePrefix = "a b" }, `agent "planner": tools[0].tool_name_prefix: "a b" must be letters, digits, underscores and dashes, at most 32, and no reserved name`},
		"timeouts":          {func(d *agent.Definition) { tools(d).Timeout, tools(d).ReadTimeout = -1, -1 }, "agent \"planner\": tools[0].timeout: -1ns is negative; leave it out for the default\nagent \"planner\": tools[0].sse_read_timeout: -1ns is negative; leave it out for the default"},
		"transport":         {func(d *agent.Definition) { tools(d).Transport = "x" }, `agent "planner": tools[0]: transport "x" is not one of streamable_http, sse, stdio`},
		"no url":            {func(d *agent.Definition) { tools(d).URL = "" }, `agent "planner": tools[0].url: missing`},
		"url":               {func(d *agent.Definition) { tools(d).URL = "file:///x" }, `agent "planner": tools[0].url: "file:///x" is not an http(s) URL`},
		"url's password":    {func(d *agent.Definition) { tools(d).URL = "ftp://a:hunter2@b" }, `agent "planner": tools[0].url: contains a user name or password; send it in headers, as a secret reference`},
		"url with at":       {func(d *agent.Definition) { tools(d).URL = "https://b/@x?y=a@b" }, ""},
		"http with command": {func(d *agent.Definition) { tools(d).Command = "x" }, `agent "planner": tools[0].command: only a stdio server has command, args and env`},
		"stdio": {func(d *agent.Definition) {
			stdio(d).Env = map[string]agent.SecretTemplate{"A": "b", "TOKEN": "${file:x}"}
		}, ""},
		"stdio command": {func(d *agent.Definition) { stdio(d).Command = "" }, `agent "planner": tools[0].command: missing`},
		"stdio url":     {func(d *agent.Definition) { stdio(d).URL = "https://x" }, `agent "planner": tools[0].url: a stdio server has no url and no headers`},
		"stdio auth":    {func(d *agent.Definition) { stdio(d).Auth = &agent.Auth{Type: agent.AuthMCP} }, `agent "planner": tools[0].auth_scheme: a stdio server has no HTTP authorization; give it its secrets in env, as references`},
		"stdio literal": {func(d *agent.Definition) { stdio(d).Env = map[string]agent.SecretTemplate{"API_KEY": "hunter2"} }, `agent "planner": tools[0].env.API_KEY: looks like a secret written out; use a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}`},
		"header literals": {
			func(d *agent.Definition) {
				tools(d).Headers = map[string]agent.SecretTemplate{"X-B": "Basic aHVudGVyMg==", "Cookie": "hunter2", "X-C": "a\r\nb", "X-D": "${x}", "X-A": "${env:PATH}"}
			},
			"agent \"planner\": tools[0].headers.Cookie: looks like a secret written out; use a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}\n" +
				"agent \"planner\": tools[0].headers.X-A: secret variable \"PATH\" must begin with TARRY_SECRET_\n" +
				"agent \"planner\": tools[0].headers.X-B: looks like a secret written out; use a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}\n" +
				"agent \"planner\": tools[0].headers.X-C: contains a line break\n" +
				"agent \"planner\": tools[0].headers.X-D: contains ${ that begins no reference; there are ${env:TARRY_SECRET_NAME} and ${file:NAME}",
		},
		"auth": {
			func(d *agent.Definition) { tools(d).Auth.Scopes = []string{"all"} }, `agent "planner": tools[0].scopes: all not in max_scopes`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := planner()
			tc.change(d)
			err := d.Validate()
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
			require.NotContains(t, err.Error(), "hunter2")
			var field *agent.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, field.Agent == "", field.At == nil)
		})
	}
}

func TestValidateEndsInACircle(t *testing.T) {
	t.Parallel()
	d := planner()
	d.Root.SubAgents = []*agent.Agent{d.Root}
	require.ErrorContains(t, d.Validate(), "nested deeper than 16")
}

func TestAuthProblems(t *testing.T) {
	t.Parallel()
	const (
		login = "https://login.example/authorize"
		token = "https://login.example/token"
	)
	for name, tc := range map[string]struct {
		auth agent.Auth
		want []string
	}{
		"oauth2":              {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: login, TokenURL: token, ClientID: "c"}, nil},
		"oauth2 incomplete":   {agent.Auth{Type: agent.AuthOAuth2}, []string{"auth_scheme.flows.authorizationCode.authorizationUrl: missing", "auth_scheme.flows.authorizationCode.tokenUrl: missing", "auth_credential.oauth2.client_id: missing; register a client at the provider"}},
		"oauth2 bad urls":     {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: "javascript:x", TokenURL: "https://a:b@c", ClientID: "c"}, []string{"auth_scheme.flows.authorizationCode.authorizationUrl: not an http(s) URL without user name and password", "auth_scheme.flows.authorizationCode.tokenUrl: not an http(s) URL without user name and password"}},
		"openid discovered":   {agent.Auth{Type: agent.AuthOpenIDConnect, Issuer: "https://login.example", ClientID: "c"}, nil},
		"openid written":      {agent.Auth{Type: agent.AuthOpenIDConnect, AuthorizationURL: login, TokenURL: token, ClientID: "c"}, nil},
		"openid half":         {agent.Auth{Type: agent.AuthOpenIDConnect, AuthorizationURL: "x", ClientID: "c"}, []string{"auth_scheme: give authorization_endpoint and token_endpoint, or an issuer to discover them from", "auth_scheme.authorization_endpoint: not an http(s) URL without user name and password"}},
		"mcp":                 {agent.Auth{Type: agent.AuthMCP}, nil},
		"mcp endpoints":       {agent.Auth{Type: agent.AuthMCP, TokenURL: token}, []string{"auth_scheme: an MCP server's endpoints are discovered; leave them out or use type oauth2"}},
		"mcp secret":          {agent.Auth{Type: agent.AuthMCP, ClientSecret: "${file:x}"}, []string{"auth_credential.oauth2.client_id: missing; a client secret belongs to a registered client"}},
		"type":                {agent.Auth{Type: "x", ClientID: "c"}, []string{`auth_scheme.type: "x" is not one of oauth2, openIdConnect, apiKey, http`}},
		"literal secret":      {agent.Auth{Type: agent.AuthMCP, ClientID: "c", ClientSecret: "hunter2"}, []string{"auth_credential.oauth2.client_secret: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"}},
		"method":              {agent.Auth{Type: agent.AuthMCP, ClientID: "c", ClientAuth: "x"}, []string{`auth_credential.oauth2.token_endpoint_auth_method: "x" is not one of client_secret_basic, client_secret_post, private_key_jwt, none`}},
		"method no secret":    {agent.Auth{Type: agent.AuthMCP, ClientID: "c", ClientAuth: "client_secret_post"}, []string{"auth_credential.oauth2.client_secret: missing; token_endpoint_auth_method client_secret_post sends it"}},
		"client grant":        {agent.Auth{Type: agent.AuthOAuth2, Grant: "client_credentials", TokenURL: token, ClientID: "c", ClientSecret: "${file:x}"}, nil},
		"client grant login":  {agent.Auth{Type: agent.AuthOAuth2, Grant: "client_credentials", AuthorizationURL: login, TokenURL: token, ClientID: "c", ClientSecret: "${file:x}"}, []string{"auth_scheme.flows.clientCredentials.authorizationUrl: client credentials ask nobody; remove it"}},
		"client grant none":   {agent.Auth{Type: agent.AuthOAuth2, Grant: "client_credentials", TokenURL: token, ClientID: "c", ClientSecret: "${file:x}", ClientAuth: "none"}, []string{"auth_credential.oauth2.token_endpoint_auth_method: none proves nothing; client credentials need client_secret_basic, client_secret_post or private_key_jwt"}},
		"client grant openid": {agent.Auth{Type: agent.AuthOpenIDConnect, Grant: "client_credentials", Issuer: "https://i", ClientID: "c", ClientSecret: "${file:x}"}, []string{"tarry.grant: client credentials know no person, and openIdConnect is about one; use type oauth2 with flows.clientCredentials"}},
		"key":                 {agent.Auth{Type: agent.AuthMCP, Issuer: "https://i", ClientID: "c", ClientAuth: "private_key_jwt", PrivateKey: "${file:k.pem}", PrivateKeyID: "1", AssertionAudience: "token_endpoint"}, nil},
		"key of the app":      {agent.Auth{Type: agent.AuthOAuth2, Grant: "client_credentials", TokenURL: token, ClientID: "c", ClientAuth: "private_key_jwt", PrivateKey: "${file:k.pem}"}, nil},
		"key missing":         {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: login, TokenURL: token, ClientID: "c", ClientAuth: "private_key_jwt", PrivateKeyID: "1"}, []string{"auth_credential.oauth2.private_key: missing; token_endpoint_auth_method private_key_jwt signs with it", "auth_credential.oauth2.private_key_id: there is no private_key that it names; remove it"}},
		"key and secret":      {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: login, TokenURL: token, ClientID: "c", ClientAuth: "private_key_jwt", PrivateKey: "${file:k.pem}", ClientSecret: "${file:x}"}, []string{"auth_credential.oauth2.client_secret: private_key_jwt needs none; remove it or private_key"}},
		"key, other method":   {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: login, TokenURL: token, ClientID: "c", PrivateKey: "${file:k.pem}"}, []string{"auth_credential.oauth2.token_endpoint_auth_method: must be private_key_jwt where there is a private_key"}},
		"key, any issuer":     {agent.Auth{Type: agent.AuthMCP, ClientID: "c", ClientAuth: "private_key_jwt", PrivateKey: "${file:k.pem}"}, []string{"tarry.issuer: missing; a client with a private key is bound to one issuer, or it would sign for any that a server names"}},
		"key, no client":      {agent.Auth{Type: agent.AuthMCP, ClientAuth: "private_key_jwt", PrivateKey: "${file:k.pem}"}, []string{"auth_credential.oauth2.client_id: missing; a private key belongs to a registered client"}},
		"literal key":         {agent.Auth{Type: agent.AuthMCP, Issuer: "https://i", ClientID: "c", ClientAuth: "private_key_jwt", PrivateKey: "hunter2"}, []string{"auth_credential.oauth2.private_key: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"}},
		"audience":            {agent.Auth{Type: agent.AuthMCP, AssertionAudience: "https://x"}, []string{`tarry.assertion_audience: "https://x" is not one of issuer, token_endpoint`}},
		"audience, no key":    {agent.Auth{Type: agent.AuthMCP, AssertionAudience: "token_endpoint"}, []string{"tarry.assertion_audience: only private_key_jwt makes assertions; remove it"}},
		"id token":            {agent.Auth{Type: agent.AuthOpenIDConnect, Issuer: "https://i", ClientID: "c", UseIDToken: true}, nil},
		"id token, no issuer": {agent.Auth{Type: agent.AuthOpenIDConnect, AuthorizationURL: login, TokenURL: token, ClientID: "c", UseIDToken: true}, []string{"auth_scheme.issuerUrl: missing; the ID token is verified with the keys of its issuer"}},
		"id token of oauth2":  {agent.Auth{Type: agent.AuthOAuth2, AuthorizationURL: login, TokenURL: token, ClientID: "c", UseIDToken: true}, []string{"tarry.use_id_token: only openIdConnect has ID tokens; remove it or use that type"}},
		"account":             {agent.Auth{Type: agent.AuthServiceAccount, ServiceAccount: "${file:g.json}", Scopes: []string{"a"}}, nil},
		"account's id token":  {agent.Auth{Type: agent.AuthServiceAccount, ServiceAccount: "${file:g.json}", UseIDToken: true, Audience: "https://run"}, nil},
		"account, nothing":    {agent.Auth{Type: agent.AuthServiceAccount, UseIDToken: true}, []string{"auth_credential.service_account.service_account_credential: missing; refer to the JSON of the account's key", "auth_credential.service_account.audience: missing; an ID token is for somebody, mostly the URL of the service"}},
		"account, literal":    {agent.Auth{Type: agent.AuthServiceAccount, ServiceAccount: "{hunter2}", Scopes: []string{"a"}}, []string{"auth_credential.service_account.service_account_credential: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"}},
		"account, client":     {agent.Auth{Type: agent.AuthServiceAccount, ServiceAccount: "${file:g.json}", Scopes: []string{"a"}, ClientID: "c"}, []string{"auth_credential: a service account needs no client and no grant; remove them"}},
		"device":              {agent.Auth{Type: agent.AuthOAuth2, Grant: "device_code", DeviceURL: "https://i/device", TokenURL: token, ClientID: "c"}, nil},
		"device incomplete":   {agent.Auth{Type: agent.AuthOAuth2, Grant: "device_code", TokenURL: token, ClientID: "c"}, []string{"auth_scheme.flows.deviceCode.deviceAuthorizationUrl: missing"}},
		"device, no client":   {agent.Auth{Type: agent.AuthMCP, Grant: "device_code"}, []string{"auth_credential.oauth2.client_id: missing; a login with a code is that of a registered client"}},
		"legacy resource":     {agent.Auth{Type: agent.AuthMCP, LegacyAuthorization: true, Resource: "https://x"}, []string{"tarry.resource: a server of the time before resource metadata has no resource of another name; remove it or legacy_authorization"}},
		"scopes":              {agent.Auth{Type: agent.AuthMCP, Scopes: []string{"a", "b", "c"}, MaxScopes: []string{"b"}}, []string{"scopes: a c not in max_scopes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range tc.auth.Problems() {
				got = append(got, p.Error())
			}
			require.Equal(t, tc.want, got)
		})
	}
}
