package agent

import (
	"encoding/json"
	"time"
)

// Kind is an agent class of ADK.
type Kind string

// The kinds that Tarry runs.
const (
	KindLLM        Kind = "LlmAgent"
	KindLoop       Kind = "LoopAgent"
	KindSequential Kind = "SequentialAgent"
	KindParallel   Kind = "ParallelAgent"
	// KindCustom is an agent that is a Go function, registered with the worker under the name in [Agent.Custom].
	KindCustom Kind = "CustomAgent"
)

// Definition is one app: a tree of agents under the name that clients use (ADK's app name). It is immutable once
// published; its [Definition.Hash] names it. It holds references to secrets, never secrets.
type Definition struct {
	App  string `json:"app"`
	Root *Agent `json:"root"`
}

// Agent is one node of the tree. Fields that do not belong to its Kind must be zero; [Definition.Validate] says which.
type Agent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Kind        Kind   `json:"kind"`

	// Model is a name such as "gemini/gemini-2.5-flash". Empty means the model of the nearest ancestor that has one.
	Model string `json:"model,omitempty"`
	// Instruction is a template: {key} is replaced by session state, {key?} by state or nothing.
	Instruction string `json:"instruction,omitempty"`
	// GlobalInstruction is a template that comes before the instruction of every agent of the tree. Only the root has it,
	// of whatever kind it is.
	GlobalInstruction string `json:"global_instruction,omitempty"`
	// StaticInstruction is sent as it is, without state. Where it is set, it takes the place of Instruction, which moves
	// into the conversation: what comes first in a request stays the same, and providers can cache it.
	StaticInstruction string `json:"static_instruction,omitempty"`
	// OutputKey names the state key that receives the agent's final text. Empty means none.
	OutputKey string `json:"output_key,omitempty"`
	// OutputSchema is the JSON Schema of the agent's final answer; empty means any text. With OutputKey the state gets the
	// answer's value instead of its text.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	// InputSchema is the JSON Schema of what the agent is called with where it serves as a tool; empty means any text.
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	// IncludeContents is "default" (or empty) or "none": whether earlier invocations are shown to the model.
	IncludeContents string `json:"include_contents,omitempty"`
	// GenerateContentConfig is ADK's generate_content_config as JSON in genai's camelCase.
	GenerateContentConfig json.RawMessage `json:"generate_content_config,omitempty"`
	Tools                 []Tool          `json:"tools,omitempty"`
	// Planner is nil for none.
	Planner *Planner `json:"planner,omitempty"`
	// Callbacks are run around the agent's model and tool calls.
	Callbacks Callbacks `json:"callbacks,omitempty"`

	// Custom is the registered name of the function of a CustomAgent.
	Custom string `json:"custom,omitempty"`

	// DisallowTransferToParent and DisallowTransferToPeers keep the model from handing the conversation to the agent above
	// this one, or to those beside it.
	DisallowTransferToParent bool `json:"disallow_transfer_to_parent,omitempty"`
	DisallowTransferToPeers  bool `json:"disallow_transfer_to_peers,omitempty"`

	// MaxIterations bounds a LoopAgent; 0 means until a tool escalates.
	MaxIterations int      `json:"max_iterations,omitempty"`
	SubAgents     []*Agent `json:"sub_agents,omitempty"`

	Wait WaitPolicy `json:"wait,omitzero"`

	// OnMessage is what becomes of a message that comes while an invocation runs; empty means [MessageQueue]. Only the root has
	// it, and Limits, of whatever kind it is.
	OnMessage OnMessage `json:"on_message,omitempty"`
	Limits    Limits    `json:"limits,omitzero"`
}

// Callback names a Go function that is registered with the worker. The definition pins the name, not what the function does.
type Callback struct {
	Name string `json:"name"`
	// Args is a JSON object for the function; empty means none.
	Args json.RawMessage `json:"args,omitempty"`
}

// Tool is one entry of an agent's tools; exactly one field is set.
type Tool struct {
	// Builtin is the name of a tool that Tarry brings: "exit_loop", "request_input".
	Builtin string `json:"builtin,omitempty"`
	// Function is the name of a Go tool registered with the worker.
	Function string `json:"function,omitempty"`
	// LongRunning says that the function begins work which others finish (ADK's LongRunningFunctionTool); what is registered
	// may say so too.
	LongRunning bool `json:"long_running,omitempty"`
	// MCP is a toolset served by an MCP server.
	MCP *MCPToolset `json:"mcp,omitempty"`
	// Agent is an agent that is called like a tool (ADK's AgentTool).
	Agent *AgentTool `json:"agent,omitempty"`
}

// AgentTool is an agent behind a tool call: it sees what it is called with, and not the conversation of its caller.
type AgentTool struct { //nolint:revive // ADK's name
	Agent *Agent `json:"agent"`
	// SkipSummarization makes the agent's answer the end of its caller's turn.
	SkipSummarization bool `json:"skip_summarization,omitempty"`
}

// Transport of an MCP server.
type Transport string

// The transports that ADK's McpToolset knows.
const (
	TransportStreamableHTTP Transport = "streamable_http"
	TransportSSE            Transport = "sse"
	TransportStdio          Transport = "stdio"
)

// MCPToolset is ADK's McpToolset.
type MCPToolset struct {
	// Name is unique in the definition and becomes part of activity types: lower case letters, digits and underscores.
	Name      string    `json:"name"`
	Transport Transport `json:"transport"`

	URL string `json:"url,omitempty"`
	// Headers are sent with every request; values may hold secret references.
	Headers map[string]SecretTemplate `json:"headers,omitempty"`
	// Timeout bounds connecting and listing; 0 means the default of package tools/mcp.
	Timeout time.Duration `json:"timeout,omitempty"`
	// ReadTimeout bounds the silence of a stream (ADK's sse_read_timeout); 0 means the default of package tools/mcp.
	ReadTimeout time.Duration `json:"read_timeout,omitempty"`

	Command string                    `json:"command,omitempty"`
	Args    []string                  `json:"args,omitempty"`
	Env     map[string]SecretTemplate `json:"env,omitempty"`

	// Filter is the list of tools that are shown to the model; empty means all.
	Filter []string `json:"filter,omitempty"`
	// NamePrefix is put before each tool name, with an underscore, as in ADK.
	NamePrefix string `json:"name_prefix,omitempty"`

	// Lazy lets the agent start before the server's tools are listed when listing needs a login: the model gets one tool
	// that connects, and the person is asked when the model calls it. Otherwise the invocation waits for the login first.
	Lazy bool `json:"lazy,omitempty"`
	// AcceptDefaults answers a server's form (MCP elicitation, form mode) with the defaults of its schema, without asking
	// anybody; a form with a required field that has no default is shown to a person or declined.
	AcceptDefaults bool `json:"accept_defaults,omitempty"`

	// RequireConfirmation makes every call of the toolset wait for a person's approval (ADK's require_confirmation), Confirm
	// those of the tools that it names, as the server names them.
	RequireConfirmation bool     `json:"require_confirmation,omitempty"`
	Confirm             []string `json:"confirm,omitempty"`

	// Auth is nil when the server needs none or says by itself (401 and protected resource metadata) what it needs.
	Auth *Auth `json:"auth,omitempty"`
}

// AuthType is how a credential is obtained.
type AuthType string

// The ways to a credential.
const (
	// AuthOAuth2 is an authorization code flow with the endpoints written in the definition.
	AuthOAuth2 AuthType = "oauth2"
	// AuthOpenIDConnect is the same with OpenID Connect endpoints, written or discovered from Issuer.
	AuthOpenIDConnect AuthType = "openIdConnect"
	// AuthServiceAccount is a Google service account: the app's own credential, for which nobody is asked.
	AuthServiceAccount AuthType = "serviceAccount"
	// AuthMCP is the MCP authorization spec: the server's 401 starts discovery. It is the default of an MCP toolset.
	AuthMCP AuthType = "mcp"
	// AuthAPIKey is a key that a person types in: OpenAPI's apiKey.
	AuthAPIKey AuthType = "apiKey"
	// AuthHTTP is a user name and password, or a bearer token, that a person types in: OpenAPI's http.
	AuthHTTP AuthType = "http"
)

// ClientAuthPrivateKey is the value of [Auth.ClientAuth] for a client that signs (OpenID Connect Core section 9).
const ClientAuthPrivateKey = "private_key_jwt"

// AudienceTokenEndpoint is the value of [Auth.AssertionAudience] for providers that do not take their issuer identifier yet.
const AudienceTokenEndpoint = "token_endpoint"

// GrantDeviceCode is the value of [Auth.Grant] for a login on another device, with a code (RFC 8628).
const GrantDeviceCode = "device_code"

// GrantClientCredentials is the value of [Auth.Grant] for a credential of the app itself (RFC 6749 section 4.4).
const GrantClientCredentials = "client_credentials"

// Auth is the definition of a credential: ADK's auth_scheme, auth_credential and credential_key in one.
type Auth struct {
	// Key is a lookup name inside the app (ADK's credential_key); it grants nothing. Empty means derived.
	Key  string   `json:"key,omitempty"`
	Type AuthType `json:"type"`

	AuthorizationURL string `json:"authorization_url,omitempty"`
	TokenURL         string `json:"token_url,omitempty"`
	// DeviceURL is the device authorization endpoint (RFC 8628), for [GrantDeviceCode].
	DeviceURL string `json:"device_url,omitempty"`
	// Issuer is the provider's issuer; for providers without one a label, by default the token endpoint's origin.
	Issuer string `json:"issuer,omitempty"`
	// Resource is what the token is for (RFC 8707): the origin or URL that it may be sent to.
	Resource string `json:"resource,omitempty"`

	Scopes []string `json:"scopes,omitempty"`
	// MaxScopes is the most that this credential may ever ask for; empty means no limit.
	MaxScopes []string `json:"max_scopes,omitempty"`

	ClientID     string    `json:"client_id,omitempty"`
	ClientSecret SecretRef `json:"client_secret,omitempty"`
	// ClientAuth is ADK's token_endpoint_auth_method: "client_secret_basic" (default with a secret),
	// "client_secret_post", "private_key_jwt" or "none" (default without).
	ClientAuth string `json:"client_auth,omitempty"`
	// PrivateKey is the client's key for private_key_jwt (RFC 7523 section 2.2): PEM (PKCS #8, PKCS #1, SEC 1) or a JWK. The
	// kid is the JWK's own, or PrivateKeyID; empty sends none.
	PrivateKey   SecretRef `json:"private_key,omitempty"`
	PrivateKeyID string    `json:"private_key_id,omitempty"`
	// AssertionAudience is the aud of what the key signs: "" for the issuer, or [AudienceTokenEndpoint].
	AssertionAudience string `json:"assertion_audience,omitempty"`

	// Grant is "" for a person's login (authorization code) or [GrantDeviceCode], or [GrantClientCredentials], where nobody is asked.
	Grant string `json:"grant,omitempty"`

	// ServiceAccount is the JSON of a Google service account's key; Audience is whom its ID token is for, if UseIDToken is set.
	ServiceAccount SecretRef `json:"service_account,omitempty"`
	Audience       string    `json:"audience,omitempty"`
	// UseIDToken sends the ID token, that of a login verified, where the access token would go.
	UseIDToken bool `json:"use_id_token,omitempty"`

	// OmitResource keeps the resource parameter (RFC 8707) out of every request, for providers that reject it. The token is
	// still sent to no other server than the one it was asked for.
	OmitResource bool `json:"omit_resource,omitempty"`
	// AllowMissingPKCE accepts a discovered provider whose metadata does not say which code challenge methods it supports.
	// S256 is sent all the same.
	AllowMissingPKCE bool `json:"allow_missing_pkce,omitempty"`
	// LegacyAuthorization takes the origin of an MCP server without protected resource metadata for its authorization
	// server, as the MCP specification of 2025-03-26 has it, with guessed endpoints if need be and without a PKCE check.
	LegacyAuthorization bool `json:"legacy_authorization,omitempty"`

	// In, Name and Scheme say how a key is sent: In and Name are OpenAPI's for [AuthAPIKey] ([InHeader], [InQuery], [InCookie]
	// and the name there), Scheme is [SchemeBasic] or [SchemeBearer] for [AuthHTTP].
	In     string `json:"in,omitempty"`
	Name   string `json:"name,omitempty"`
	Scheme string `json:"scheme,omitempty"`
	// Secret is the app's own API key, password or bearer token, and Username, for [SchemeBasic], whose the password is. Where
	// Secret is empty, the person is asked.
	Secret   SecretRef      `json:"secret,omitempty"`
	Username SecretTemplate `json:"username,omitempty"`

	// Domain gives the agent a credential of its own inside the app; empty means shared by the app.
	Domain string `json:"domain,omitempty"`
	// AuthorizationParams are added to the authorization URL ("access_type": "offline", "prompt": "consent").
	AuthorizationParams map[string]string `json:"authorization_params,omitempty"`
}
