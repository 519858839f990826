package yaml_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genai"

	"tarry/agent"
	"tarry/agent/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

func options() yaml.Options {
	return yaml.Options{
		Functions:  []string{"desk.tools.close_ticket"},
		AllowStdio: true,
		Vars:       map[string]string{"MODEL": "scripted/tickets", "BASE": "http://127.0.0.1:8123"},
	}
}

func TestLoadReadsWhatADKReads(t *testing.T) {
	t.Parallel()
	defs, err := yaml.Load("testdata/apps", options())
	require.NoError(t, err)
	apps := make([]string, 0, len(defs))
	for _, def := range defs {
		apps = append(apps, def.App)
		got, err := json.MarshalIndent(def, "", "  ")
		require.NoError(t, err)
		golden := filepath.Join("testdata", "golden", def.App+".json")
		if *update {
			require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got)+"\n")
	}
	require.Equal(t, []string{"directory", "hello_world", "notion", "tickets", "writing_loop"}, apps)
}

func TestLoadTakesAFolderThatIsAnApp(t *testing.T) {
	t.Parallel()
	defs, err := yaml.Load("testdata/apps/hello_world", options())
	require.NoError(t, err)
	require.Len(t, defs, 1)
	require.Equal(t, "hello_world", defs[0].App)
	def, err := yaml.LoadApp("testdata/apps/hello_world/", options())
	require.NoError(t, err)
	require.Equal(t, defs[0], def)
}

func TestLoadSkipsWhatIsNoApp(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"a/root_agent.yaml":      "name: a\nmodel: m\n",
		"python/agent.py":        "root_agent = None\n",
		"..data/root_agent.yaml": "not: read\n",
		"README.md":              "# Agents\n",
	})
	defs, err := yaml.Load(dir, yaml.Options{})
	require.NoError(t, err)
	require.Len(t, defs, 1)
}

// A volume that Kubernetes mounts holds links into a folder beside them.
func TestLoadFollowsLinksInsideTheFolder(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"app/..v1/root_agent.yaml": "name: a\nmodel: m\n"})
	require.NoError(t, os.Symlink("..v1", filepath.Join(dir, "app", "..data")))
	require.NoError(t, os.Symlink("..data/root_agent.yaml", filepath.Join(dir, "app", "root_agent.yaml")))
	for _, at := range []string{dir, filepath.Join(dir, "app")} {
		defs, err := yaml.Load(at, yaml.Options{})
		require.NoError(t, err)
		require.Equal(t, "app", defs[0].App)
	}
}

func TestGenerateContentConfigIsWhatGenaiReads(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"root_agent.yaml": `
name: a
model: m
generate_content_config:
  temperature: 0.5
  top_p: 1
  topK: 40
  candidate_count: 1
  maxOutputTokens: 100
  stop_sequences: [a, b]
  response_logprobs: true
  logprobs: 3
  presence_penalty: 0.1
  frequency_penalty: -0.1
  seed: 7
  response_mime_type: application/json
  response_json_schema: {type: object, properties: {first_name: {type: string}, n: {minimum: 1, nullable: true, default: null}}}
  safety_settings: [{category: HARM_CATEGORY_HARASSMENT, threshold: BLOCK_NONE, method: SEVERITY}]
  tool_config: {function_calling_config: {mode: ANY, allowed_function_names: [f]}}
  labels: {cost_center: x}
  cached_content: c
  response_modalities: [TEXT]
  media_resolution: MEDIA_RESOLUTION_LOW
  service_tier: flex
  thinking_config: {include_thoughts: true, thinking_budget: -1, thinking_level: LOW}
`})
	def, err := yaml.LoadApp(dir, yaml.Options{})
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(def.Root.GenerateContentConfig))
	decoder.DisallowUnknownFields()
	var config genai.GenerateContentConfig
	require.NoError(t, decoder.Decode(&config))
	require.Equal(t, map[string]string{"cost_center": "x"}, config.Labels)
	require.Equal(t, []string{"f"}, config.ToolConfig.FunctionCallingConfig.AllowedFunctionNames)
	schema, err := json.Marshal(config.ResponseJsonSchema)
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{"first_name":{"type":"string"},"n":{"minimum":1,"nullable":true,"default":null}}}`, string(schema))
}

func TestToolsetNames(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"root_agent.yaml": "agent_class: SequentialAgent\nname: root\nmodel: m\nsub_agents: [{config_path: a.yaml}, {config_path: b.yaml}]\n",
		"a.yaml": "name: a\ntools:\n" + server("http://[::1]:80/mcp") + server("https://2go.example.com") +
			server("https://a-very-long-name-for-a-server.in-some-zone.example.com/mcp") +
			server("https://a-very-long-name-for-a-server.in-some-zone.example.com/mcp2"),
		"b.yaml": "name: b\ntools:\n" + server("http://localhost/mcp") + server("http://10.0.0.7/mcp") + server("https://bücher.example/mcp"),
	})
	names := func() []string {
		def, err := yaml.LoadApp(dir, yaml.Options{})
		require.NoError(t, err)
		var out []string
		for a := range def.All() {
			for _, tool := range a.Tools {
				out = append(out, tool.MCP.Name)
			}
		}
		return out
	}
	require.Equal(t, []string{
		"mcp", "mcp_2go_example_com", "a_very_long_name_for_a_server_in_some_zo", "a_very_long_name_for_a_server_in_some_2",
		"mcp_2", "mcp_3", "b_cher_example",
	}, names())
	require.Equal(t, "mcp", names()[0], "the same files give the same names again")
}

func TestAuthIsNilWhereTheServerTells(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]*agent.Auth{
		"":                    nil,
		"credential_key: k":   {Type: agent.AuthMCP, Key: "k"},
		"auth_credential: {}": nil,
		"auth_credential: {oauth2: {redirect_uri: 'http://x'}}": nil,
		"auth_credential: {oauth2: {client_id: c}}":             {Type: agent.AuthMCP, ClientID: "c"},
		"tarry: {max_scopes: [a]}":                              {Type: agent.AuthMCP, MaxScopes: []string{"a"}},
		"tarry: {omit_resource: true}":                          {Type: agent.AuthMCP, OmitResource: true},
		"tarry: {allow_missing_pkce: true}":                     {Type: agent.AuthMCP, AllowMissingPKCE: true},
		"tarry: {legacy_authorization: true}":                   {Type: agent.AuthMCP, LegacyAuthorization: true},
		"tarry: {grant: authorization_code}":                    {Type: agent.AuthMCP},
		"auth_scheme: {type: http, scheme: bearer}\n      auth_credential: {auth_type: serviceAccount, service_account: {serviceAccountCredential: '${file:g.json}', scopes: [a]}}": {
			Type: agent.AuthServiceAccount, ServiceAccount: "${file:g.json}", Scopes: []string{"a"},
		},
		"auth_credential: {auth_type: serviceAccount, service_account: {service_account_credential: '${file:g.json}', use_id_token: true, audience: 'https://run'}}": {
			Type: agent.AuthServiceAccount, ServiceAccount: "${file:g.json}", UseIDToken: true, Audience: "https://run",
		},
		"auth_scheme: {type: oauth2, flows: {deviceCode: {deviceAuthorizationUrl: 'https://d', tokenUrl: 'https://t', scopes: {a: ''}}}}\n      auth_credential: {oauth2: {client_id: c}}": {
			Type: agent.AuthOAuth2, Grant: agent.GrantDeviceCode, DeviceURL: "https://d", TokenURL: "https://t", Scopes: []string{"a"}, ClientID: "c",
		},
		"tarry: {issuer: 'https://i', assertion_audience: token_endpoint}\n      auth_credential: {oauth2: {client_id: c, token_endpoint_auth_method: private_key_jwt, privateKey: '${file:k.pem}', private_key_id: k}}": {
			Type: agent.AuthMCP, Issuer: "https://i", ClientID: "c", ClientAuth: agent.ClientAuthPrivateKey, PrivateKey: "${file:k.pem}", PrivateKeyID: "k",
			AssertionAudience: agent.AudienceTokenEndpoint,
		},
		"tarry: {grant: client_credentials, issuer: 'https://i'}\n      auth_credential: {oauth2: {client_id: c, client_secret: '${file:x}'}}": {
			Type: agent.AuthMCP, Grant: "client_credentials", Issuer: "https://i", ClientID: "c", ClientSecret: "${file:x}",
		},
		"auth_scheme: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://t', scopes: {a: ''}}}}\n      auth_credential: {oauth2: {client_id: c, client_secret: '${file:x}'}}": {
			Type: agent.AuthOAuth2, Grant: "client_credentials", TokenURL: "https://t", Scopes: []string{"a"}, ClientID: "c", ClientSecret: "${file:x}",
		},
	} {
		dir := write(t, map[string]string{"root_agent.yaml": "name: a\nmodel: m\ntools:\n" + server("https://x.example") + "      " + args + "\n"})
		def, err := yaml.LoadApp(dir, yaml.Options{})
		require.NoError(t, err, args)
		require.Equal(t, want, def.Root.Tools[0].MCP.Auth, args)
	}
}

func TestTarryBlockOfAToolset(t *testing.T) {
	t.Parallel()
	stdio := "  - name: McpToolset\n    args:\n      stdio_server_params: {command: c}\n"
	for args, want := range map[string]agent.MCPToolset{
		"tarry: {}":            {},
		"tarry: {lazy: false}": {},
		"tarry: {lazy: true}":  {Lazy: true},
		"tarry: {lazy: true, accept_defaults: true}": {Lazy: true, AcceptDefaults: true},
		"require_confirmation: true":                 {RequireConfirmation: true},
		"require_confirmation: false":                {},
		"tarry: {confirm: [send, delete]}":           {Confirm: []string{"send", "delete"}},
		"tarry: {lazy: true, issuer: 'https://i'}":   {Lazy: true, Auth: &agent.Auth{Type: agent.AuthMCP, Issuer: "https://i"}},
	} {
		for name, head := range map[string]string{"http": server("https://x.example"), "stdio": stdio} {
			if name == "stdio" && want.Auth != nil {
				continue
			}
			dir := write(t, map[string]string{"root_agent.yaml": "name: a\nmodel: m\ntools:\n" + head + "      " + args + "\n"})
			def, err := yaml.LoadApp(dir, options())
			require.NoError(t, err, args)
			got := def.Root.Tools[0].MCP
			require.Equal(t, want, agent.MCPToolset{
				Lazy: got.Lazy, AcceptDefaults: got.AcceptDefaults, RequireConfirmation: got.RequireConfirmation, Confirm: got.Confirm, Auth: got.Auth,
			}, "%s %s", name, args)
		}
	}
}

func server(url string) string {
	return "  - name: McpToolset\n    args:\n      streamable_http_connection_params: {url: '" + url + "'}\n"
}

// write makes a folder named app of files.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "app")
	require.NoError(t, os.Mkdir(dir, 0o750))
	for name, content := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	}
	return dir
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"root_agent.yaml": head + "output_schema: {name: Weather}\ninput_schema:\n  json_schema:\n    type: object\n    properties: {city: {type: string}}\n"})
	def, err := yaml.LoadApp(dir, yaml.Options{Schemas: map[string]json.RawMessage{"Weather": json.RawMessage(`{"type":"array"}`)}})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"array"}`, string(def.Root.OutputSchema), "the definition holds the schema, not its name")
	require.JSONEq(t, `{"properties":{"city":{"type":"string"}},"type":"object"}`, string(def.Root.InputSchema))
}

func TestCallbacks(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{"root_agent.yaml": head + "before_model_callbacks:\n  - name: check\n    args: {most: 3, words: [a, b]}\n  - name: count\n  - name: check\n    args:\n      - {name: most, value: 4}\n"})
	def, err := yaml.LoadApp(dir, yaml.Options{Callbacks: map[agent.CallbackPoint][]string{agent.BeforeModel: {"check", "count"}}})
	require.NoError(t, err)
	require.Equal(t, agent.Callbacks{agent.BeforeModel: {
		{Name: "check", Args: json.RawMessage(`{"most":3,"words":["a","b"]}`)}, {Name: "count"}, {Name: "check", Args: json.RawMessage(`{"most":4}`)},
	}}, def.Root.Callbacks)
}

func TestPlanners(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]*agent.Planner{
		"planner: {name: PlanReActPlanner}\n": {Kind: agent.PlannerPlanReAct},
		"planner: {name: google.adk.planners.BuiltInPlanner, args: {thinking_config: {thinking_budget: 5}}}\n": {Kind: agent.PlannerBuiltIn, ThinkingConfig: json.RawMessage(`{"thinkingBudget":5}`)},
	} {
		def, err := yaml.LoadApp(write(t, map[string]string{"root_agent.yaml": head + text}), yaml.Options{})
		require.NoError(t, err)
		require.Equal(t, want, def.Root.Planner)
	}
}

// The tarry block of a root agent. Defaults that are written out make no other definition.
func TestPolicies(t *testing.T) {
	t.Parallel()
	load := func(block string) *agent.Definition {
		dir := write(t, map[string]string{"root_agent.yaml": "name: a\nmodel: m\ntarry: " + block + "\n"})
		def, err := yaml.LoadApp(dir, options())
		require.NoError(t, err)
		return def
	}
	full := load("{deadline: 72h, on_deadline: fail, remind: 24h, on_message: interrupt, limits: {model_calls: 50, tokens: 1000, duration: 1h, session: {model_calls: 500, tokens: 10000, duration: 24h}}}").Root
	require.Equal(t, agent.WaitPolicy{Deadline: 72 * time.Hour, OnDeadline: agent.DeadlineFail, Remind: 24 * time.Hour}, full.Wait)
	require.Equal(t, agent.MessageInterrupt, full.OnMessage)
	require.Equal(t, agent.Limits{
		ModelCalls: 50, Tokens: 1000, Duration: time.Hour, Session: agent.SessionLimits{ModelCalls: 500, Tokens: 10_000, Duration: 24 * time.Hour},
	}, full.Limits)
	require.Equal(t, load("{credential_deadline: 1h}").Root, load("{deadline: 1h, on_deadline: deny, on_message: queue}").Root)
}
