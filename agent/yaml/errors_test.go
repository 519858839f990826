package yaml_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/agent/yaml"
)

const (
	head = "name: a\nmodel: m\n"
	// mcp begins a toolset; its lines have six spaces, those of args ten.
	mcp = head + "tools:\n  - name: McpToolset\n    args:\n"
	web = mcp + "      streamable_http_connection_params:\n        url: https://x.example/mcp\n"
	// client is a client with a secret, in one line.
	// key and basic are schemes whose credential a person types.
	key    = "      auth_scheme: {type: apiKey, in: header, name: X-Key}\n"
	basic  = "      auth_scheme: {type: http, scheme: basic}\n"
	client = "      auth_credential: {oauth2: {client_id: c, client_secret: '${file:x}'}}\n"
)

func badFiles() map[string]struct {
	content string
	want    []string // line: field: problem
} {
	type file = struct {
		content string
		want    []string
	}
	one := func(content string, want ...string) file { return file{content, want} }
	return map[string]file{
		"empty":              one("", "the file is empty; an agent needs a name and an instruction"),
		"comment only":       one("# hello\n", "the file is empty; an agent needs a name and an instruction"),
		"null":               one("~\n", "the file is empty; an agent needs a name and an instruction"),
		"list":               one("- name: a\n", "1: the file must hold an agent: keys such as name and instruction, each with a value"),
		"text":               one("hello", "1: the file must hold an agent: keys such as name and instruction, each with a value"),
		"two documents":      one(head+"---\nname: b\n", "3: a second document begins (---); put each agent into a file of its own"),
		"bad second":         one(head+"---\n\tname: b\n", "4: a tab indents this line; use spaces"),
		"tab":                one("name: a\ntools:\n\t- name: exit_loop\n", "3: a tab indents this line; use spaces"),
		"tab in block":       one("name: a\ninstruction: |\n\tx\n", "3: a tab indents this line; use spaces"),
		"syntax":             one("name: a\ninstruction: a: b\n", "2: not YAML: mapping values are not allowed in this context"),
		"invalid utf-8":      one("name: \xff\n", "not YAML: invalid leading UTF-8 octet (value: 255)"),
		"duplicate key":      one("name: a\nmodel: m\nname: b\n", "3: name: the key is there twice, first in line 1; remove one"),
		"nested duplicate":   one(web+"        url: https://y.example\n", "8: tools[0].args.streamable_http_connection_params.url: the key is there twice, first in line 7; remove one"),
		"alias":              one("name: &n a\nmodel: m\ndescription: *n\n", "3: description: aliases (*name) are not read; write the value out"),
		"alias bomb":         one("name: a\nmodel: m\ndescription: &a [x, x]\ninstruction: &b [*a, *a]\n", "4: instruction[0]: aliases (*name) are not read; write the value out", "4: instruction[1]: aliases (*name) are not read; write the value out"),
		"unknown alias":      one("name: a\ninstruction: *hunter2\n", "2: an alias (*name) names an anchor that is not there; quote the text, or write the value out"),
		"merge key":          one(head+"<<: {description: x}\n", "3: <<: merge keys (<<) are not read; write the values out"),
		"tag":                one("name: a\nmodel: !hunter2 m\n", "2: model: tags (!name) are not read; quote the text if it begins with an exclamation mark"),
		"key that is a map":  one(head+"? {a: b}\n: c\n", "3: a key must be text; quote it"),
		"key that is a bool": one(head+"true: c\n", "3: a key must be text; quote it"),
		"too deep":           one(head+"instruction: "+strings.Repeat("[", 40)+strings.Repeat("]", 40), "3: instruction"+strings.Repeat("[0]", 32)+": nested deeper than 32"),
		"too large":          one(head+"instruction: "+strings.Repeat("x", 1<<20), "larger than 1048576 bytes; split the agent or shorten its instruction"),

		"unknown key":         one(head+"instructions: x\n", "3: instructions: unknown key; did you mean instruction?"),
		"unknown far key":     one(head+"frobnicate: x\n", "3: frobnicate: unknown key; known: after_agent_callbacks, after_model_callbacks, after_tool_callbacks, agent_class, before_agent_callbacks, before_model_callbacks, before_tool_callbacks, description, disallow_transfer_to_parent, disallow_transfer_to_peers, generate_content_config, global_instruction, include_contents, input_schema, instruction, max_iterations, model, name, on_model_error_callbacks, on_tool_error_callbacks, output_key, output_schema, planner, static_instruction, sub_agents, tarry, tools"),
		"key of ADK":          one(head+"code_executor: {}\n", "3: code_executor: ADK knows this key, Tarry does not yet; remove it"),
		"schema as text":      one(head+"output_schema: Weather\n", `3: output_schema: "Weather" must be a mapping (keys with values)`),
		"unknown schema":      one(head+"output_schema: {name: Wether}\n", `3: output_schema.name: no schema "Wether" is registered; known: Weather`),
		"schema twice":        one(head+"input_schema: {name: Weather, json_schema: {}}\n", "3: input_schema: needs a name of a registered schema, or json_schema; write one of the two"),
		"schema without":      one(head+"input_schema: {args: []}\n", "3: input_schema.args: ADK knows this key, Tarry does not yet; a schema takes none", "3: input_schema: needs a name of a registered schema, or json_schema; write one of the two"),
		"bad schema":          one(head+"output_schema:\n  json_schema: {type: 7}\n", "4: output_schema.json_schema: is not a JSON Schema; mend the type of one of its keywords"),
		"schema elsewhere":    one(head+"output_schema:\n  json_schema: {$ref: 'https://x.example/hunter2'}\n", "4: output_schema.json_schema: is not a JSON Schema that can be used; each $ref must name a part of it, such as #/$defs/city, and each pattern be a regular expression"),
		"schema and config":   one(head+"generate_content_config: {response_mime_type: text/plain}\noutput_schema: {json_schema: {type: object}}\n", "3: generate_content_config: responseMimeType is set by output_schema; remove one of them"),
		"unknown callback":    one(head+"before_model_callbacks:\n  - name: chek\n", `4: before_model_callbacks[0].name: no Go callback "chek" is registered for before_model_callbacks; known: check`),
		"callback elsewhere":  one(head+"after_tool_callbacks: [{name: check}]\n", `3: after_tool_callbacks[0].name: no Go callback "check" is registered for after_tool_callbacks; none is known`),
		"callback no name":    one(head+"before_model_callbacks:\n  - args: {}\n", "4: before_model_callbacks[0]: has no name; write - name: and a registered callback"),
		"callback args":       one(head+"before_model_callbacks:\n  - name: check\n    args: [{value: 1}]\n", "5: before_model_callbacks[0].args[0]: has no name; write - name: and value:"),
		"callback as text":    one(head+"before_model_callbacks: check\n", `3: before_model_callbacks: "check" must be a list (lines that begin with a dash)`),
		"planner":             one(head+"planner: {name: PlanReactPlanner}\n", `3: planner.name: there is no planner "PlanReactPlanner"; did you mean PlanReActPlanner?`),
		"planner args":        one(head+"planner: {name: PlanReActPlanner, args: {}}\n", "3: planner.args: PlanReActPlanner takes no args; remove them"),
		"planner no name":     one(head+"planner: {}\n", "3: planner: has no name; known: BuiltInPlanner, PlanReActPlanner"),
		"planner no config":   one(head+"planner: {name: google.adk.planners.BuiltInPlanner}\n", "3: planner: BuiltInPlanner needs args with a thinking_config"),
		"planner config":      one(head+"planner: {name: BuiltInPlanner, args: {thinking_config: {thinking_budget: much}}}\n", `3: planner.args.thinking_config.thinking_budget: "much" must be a whole number`),
		"planner and config":  one(head+"planner: {name: BuiltInPlanner, args: {thinking_config: {thinking_budget: 1}}}\ngenerate_content_config: {thinking_config: {thinking_budget: 1}}\n", "4: generate_content_config: thinkingConfig is set by planner; remove one of them"),
		"callback of a loop":  one("agent_class: LoopAgent\nname: a\nbefore_model_callbacks: [{name: check}]\nsub_agents: []\n", "3: before_model_callbacks: a LoopAgent calls no model and no tools; move it to a sub-agent", "4: sub_agents: a LoopAgent needs at least one"),
		"no name":             one("model: m\n", "1: name: missing; give the agent a name, for example root_agent"),
		"bad name":            one("name: my agent\nmodel: m\n", `1: name: "my agent" is not an identifier (letters, digits, underscores, at most 64)`),
		"empty name":          one("name: ''\nmodel: m\n", `1: name: "" is not an identifier (letters, digits, underscores, at most 64)`),
		"name user":           one("name: user\nmodel: m\n", `1: name: "user" is the author of what people say; choose another name`),
		"number as name":      one("name: 7\nmodel: m\n", `1: name: "7" must be text; quote it`),
		"list as instruction": one(head+"instruction:\n  - x\n", "4: instruction: a list must be text; quote it"),
		"date":                one(head+"description: 2026-01-01\n", `3: description: "2026-01-01" must be text; quote it`),
		"no model":            one("name: a\n", "1: model: missing; set it here or on a parent, for example gemini-2.5-flash"),
		"empty model":         one("name: a\nmodel: ''\n", "2: model: is empty; name a model or leave the key out"),
		"unknown variable":    one("name: a\nmodel: ${var:MODULE}\n", `2: model: there is no variable "MODULE"; known: MCP_URL, MODEL`),
		"open variable":       one("name: a\nmodel: ${var:MODEL\n", "2: model: ${var: is not closed; write ${var:NAME}"),
		"variable elsewhere":  one(head+"instruction: Use ${var:MODEL}.\n", "3: instruction: ${var:…} may stand in url and model only; write the value out"),
		"secret in prompt":    one(head+"instruction: The key is ${env:TARRY_SECRET_X}.\n", "3: instruction: secret references may stand in client_secret, api_key, credentials, headers and env only; take it out"),
		"secret in model":     one("name: a\nmodel: ${file:x}\n", "2: model: secret references may stand in client_secret, api_key, credentials, headers and env only; take it out"),
		"static mapping":      one(head+"static_instruction: {parts: []}\n", "3: static_instruction: a mapping must be text; quote it"),
		"include_contents":    one(head+"include_contents: all\n", `3: include_contents: "all" is neither "default" nor "none"`),

		"class of ADK":         one(head+"agent_class: LangGraphAgent\n", "3: agent_class: ADK knows LangGraphAgent, Tarry does not yet; known: LlmAgent, LoopAgent, ParallelAgent, SequentialAgent"),
		"custom class":         one(head+"agent_class: my.module.Agent\n", `3: agent_class: no custom agent "my.module.Agent" is registered; known: LlmAgent, LoopAgent, ParallelAgent, SequentialAgent`),
		"misspelt class":       one(head+"agent_class: LoopAgnet\n", `3: agent_class: there is no agent class "LoopAgnet"; did you mean LoopAgent?`),
		"loop without agents":  one("agent_class: LoopAgent\nname: a\n", "1: sub_agents: a LoopAgent needs at least one"),
		"loop with prompt":     one("agent_class: LoopAgent\nname: a\ninstruction: x\noutput_key: y\ntarry: {credential_deadline: 1h}\nsub_agents: []\n", "3: instruction: a LoopAgent calls no model; move it to a sub-agent", "4: output_key: a LoopAgent calls no model and no tools; move it to a sub-agent", "5: tarry.credential_deadline: a LoopAgent calls no model and no tools; move it to a sub-agent", "6: sub_agents: a LoopAgent needs at least one"),
		"iterations elsewhere": one(head+"max_iterations: 3\n", "3: max_iterations: only a LoopAgent has it"),
		"iterations as text":   one(head+"max_iterations: three\n", `3: max_iterations: "three" must be a whole number`),
		"iterations too many":  one(head+"max_iterations: 99999999999\n", `3: max_iterations: "99999999999" must be a whole number`),

		"deadline without unit": one(head+"tarry: {credential_deadline: 72}\n", `3: tarry.credential_deadline: "72" must be a duration such as 72h or 30m; leave it out for no deadline`),
		"deadline of zero":      one(head+"tarry: {credential_deadline: 0s}\n", `3: tarry.credential_deadline: "0s" must be a duration such as 72h or 30m; leave it out for no deadline`),
		"unknown in tarry":      one(head+"tarry:\n  credental_deadline: 72h\n", "4: tarry.credental_deadline: unknown key; did you mean credential_deadline?"),

		"deadline twice":        one(head+"tarry: {deadline: 1h, credential_deadline: 2h}\n", "3: tarry.credential_deadline: is the older name of deadline, which is there too; remove it"),
		"reminders":             one(head+"tarry: {deadline: 1h, remind: often}\n", `3: tarry.remind: "often" must be a duration such as 72h or 30m; leave it out for no reminders`),
		"reminders too late":    one(head+"tarry:\n  credential_deadline: 1h\n  remind: 2h\n", "5: tarry.remind: 2h0m0s is not shorter than the deadline of 1h0m0s, so nobody would be reminded; use a shorter time"),
		"on deadline":           one(head+"tarry: {deadline: 1h, on_deadline: die}\n", `3: tarry.on_deadline: "die" is neither "deny" nor "fail"`),
		"fail without deadline": one(head+"tarry: {on_deadline: fail}\n", `3: tarry.on_deadline: "fail" has no effect without a deadline; set one`),
		"on message":            one(head+"tarry: {on_message: drop}\n", `3: tarry.on_message: "drop" is neither "queue" nor "interrupt"`),
		"limit of nothing":      one(head+"tarry: {limits: {tokens: 0, model_calls: many, session: {duration: 5}}}\n", `3: tarry.limits.model_calls: "many" must be a whole number`, `3: tarry.limits.tokens: "0" must be more than 0; leave it out for no limit of this kind`, `3: tarry.limits.session.duration: "5" must be a duration such as 72h or 30m; leave it out for no limit`),
		"unknown limit":         one(head+"tarry: {limits: {token: 5, session: {calls: 1}}}\n", "3: tarry.limits.token: unknown key; did you mean tokens?", "3: tarry.limits.session.calls: unknown key; known: duration, model_calls, tokens"),

		"generation unknown":   one(head+"generate_content_config: {temprature: 1}\n", "3: generate_content_config.temprature: unknown key; did you mean temperature?"),
		"generation of ADK":    one(head+"generate_content_config: {speech_config: {}}\n", "3: generate_content_config.speech_config: ADK knows this key, Tarry does not yet; remove it"),
		"generation elsewhere": one(head+"generate_content_config: {systemInstruction: x}\n", "3: generate_content_config.systemInstruction: ADK knows this key, Tarry does not yet; write it into instruction"),
		"generation twice":     one(head+"generate_content_config: {top_p: 1, topP: 1}\n", "3: generate_content_config.topP: the key is there twice, in two spellings; remove one"),
		"generation type":      one(head+"generate_content_config: {temperature: hot, seed: 1.5, stop_sequences: x, response_logprobs: 1}\n", `3: generate_content_config.temperature: "hot" must be a number`, `3: generate_content_config.seed: "1.5" must be a whole number`, `3: generate_content_config.stop_sequences: "x" must be a list (lines that begin with a dash)`, `3: generate_content_config.response_logprobs: "1" must be true or false`),
		"generation nan":       one(head+"generate_content_config: {temperature: .nan}\n", `3: generate_content_config.temperature: ".nan" must be a number`),

		"tools as text":     one(head+"tools: exit_loop\n", `3: tools: "exit_loop" must be a list (lines that begin with a dash)`),
		"tool as text":      one(head+"tools:\n  - exit_loop\n", `4: tools[0]: "exit_loop" must be a mapping (keys with values)`),
		"tool without name": one(head+"tools:\n  - args: {}\n", "4: tools[0]: has no name; write - name: and the tool"),
		"tool empty name":   one(head+"tools:\n  - name: ''\n", "4: tools[0].name: is empty; name a tool"),
		"tool null name":    one(head+"tools:\n  - name:\n", "4: tools[0]: has no name; write - name: and the tool"),
		"tool of ADK":       one(head+"tools:\n  - name: google_search\n", "4: tools[0].name: ADK knows google_search, Tarry does not yet; remove it or register a Go tool"),
		"tool of ADK dots":  one(head+"tools:\n  - name: google.adk.tools.example_tool.ExampleTool\n", "4: tools[0].name: ADK knows ExampleTool, Tarry does not yet; remove it or register a Go tool"),
		"agent tool":        one(head+"tools:\n  - name: google.adk.tools.agent_tool.AgentTool\n", "4: tools[0]: AgentTool has no args; write agent: with a config_path"),
		"agent tool's file": one(head+"tools:\n  - name: AgentTool\n    args:\n      agent:\n        config_path: none.yaml\n", `7: tools[0].args.agent.config_path: there is no file "none.yaml"; paths are relative to this file`),
		"agent tool's self": one(head+"tools:\n  - name: AgentTool\n    args:\n      agent:\n        config_path: root_agent.yaml\n", `7: tools[0].args.agent.config_path: "root_agent.yaml" is a circle: FILE is above this agent; an agent cannot be its own sub-agent`),
		"long, no args":     one(head+"tools:\n  - name: LongRunningFunctionTool\n", "4: tools[0].name: has no args; write args: {func: NAME} with a registered Go tool; known: desk.close, desk.open"),
		"long, no func":     one(head+"tools:\n  - name: LongRunningFunctionTool\n    args: {}\n", "5: tools[0].args: has no func; name a registered Go tool; known: desk.close, desk.open"),
		"long, unknown":     one(head+"tools:\n  - name: LongRunningFunctionTool\n    args: {func: desk.opens}\n", `5: tools[0].args.func: no Go tool "desk.opens" is registered; known: desk.close, desk.open`),
		"long, more":        one(head+"tools:\n  - name: LongRunningFunctionTool\n    args: {func: desk.open, x: 1}\n", "5: tools[0].args.x: unknown key; known: func"),
		"input, args":       one(head+"tools:\n  - name: request_input\n    args: {message: x}\n", "5: tools[0].args: this tool takes no args here; remove them"),
		"unknown tool":      one(head+"tools:\n  - name: exitloop\n", `4: tools[0].name: there is no tool "exitloop"; built in: exit_loop, request_input, load_artifacts, load_memory, preload_memory, McpToolset; registered Go tools: desk.close, desk.open`),
		"unknown function":  one(head+"tools:\n  - name: desk.clsoe\n", `4: tools[0].name: no Go tool "desk.clsoe" is registered; known: desk.close, desk.open`),
		"tool with args":    one(head+"tools:\n  - name: desk.close\n    args: {x: 1}\n", "5: tools[0].args: this tool takes no args here; remove them"),
		"tool twice":        one(head+"tools:\n  - name: desk.close\n  - name: desk.close\n", "5: tools[1]: desk.close is there twice; remove one"),
		"tool unknown key":  one(head+"tools:\n  - name: exit_loop\n    arg: {}\n", "5: tools[0].arg: unknown key; did you mean args?"),

		"toolset without args": one(head+"tools:\n  - name: McpToolset\n", "4: tools[0]: McpToolset needs args with one of streamable_http_connection_params, sse_connection_params, stdio_connection_params, stdio_server_params"),
		"no connection":        one(mcp+"      tool_filter: [x]\n", "6: tools[0].args: needs exactly one of streamable_http_connection_params, sse_connection_params, stdio_connection_params, stdio_server_params; found none"),
		"two connections":      one(web+"      sse_connection_params: {url: 'https://x.example'}\n", "6: tools[0].args: needs exactly one of streamable_http_connection_params, sse_connection_params, stdio_connection_params, stdio_server_params; found streamable_http_connection_params and sse_connection_params"),
		"stdio":                one(mcp+"      stdio_server_params: {command: npx}\n", "6: tools[0].args.stdio_server_params: starts a command on this machine, which is off; use an HTTP server, or have the operator allow stdio servers"),
		"no url":               one(mcp+"      sse_connection_params: {timeout: 5}\n", "6: tools[0].args.sse_connection_params: has no url; name the MCP server's"),
		"bad url":              one(mcp+"      sse_connection_params: {url: 'x.example/mcp'}\n", `6: tools[0].args.sse_connection_params.url: "x.example/mcp" is not an http(s) URL`),
		"url with password":    one(mcp+"      sse_connection_params: {url: 'https://me:hunter2@x.example'}\n", "6: tools[0].args.sse_connection_params.url: contains a user name or password; send it in headers, as a secret reference"),
		"url with token":       one(mcp+"      sse_connection_params: {url: 'https://x.example?api_key=hunter2'}\n", "6: tools[0].args.sse_connection_params.url: holds a secret in its query (api_key); send it in headers, as a secret reference"),
		"url with reference":   one(mcp+"      sse_connection_params: {url: '${env:TARRY_SECRET_URL}'}\n", "6: tools[0].args.sse_connection_params.url: secret references may stand in client_secret, api_key, credentials, headers and env only; take it out"),
		"timeout as text":      one(web+"        timeout: 5s\n", `8: tools[0].args.streamable_http_connection_params.timeout: "5s" must be a number`),
		"timeout of zero":      one(web+"        timeout: 0\n", `8: tools[0].args.streamable_http_connection_params.timeout: "0" must be seconds, more than 0 and at most 86400`),
		"terminate_on_close":   one(web+"        terminate_on_close: false\n", "8: tools[0].args.streamable_http_connection_params.terminate_on_close: ADK knows false, Tarry does not yet; remove it"),
		"connection unknown":   one(web+"        ulr: x\n", "8: tools[0].args.streamable_http_connection_params.ulr: unknown key; did you mean url?"),
		"toolset of ADK":       one(web+"      use_mcp_resources: true\n", "8: tools[0].args.use_mcp_resources: ADK knows this key, Tarry does not yet; remove it"),
		"empty filter":         one(web+"      tool_filter: []\n", "8: tools[0].args.tool_filter: is empty and would hide every tool; leave it out to show all"),
		"reserved prefix":      one(web+"      tool_name_prefix: adk_request\n", `8: tools[0].args.tool_name_prefix: "adk_request" must be letters, digits, underscores and dashes, at most 32, and no reserved name`),
		"literal header":       one(web+"        headers:\n          X-Api-Key: hunter2\n", "9: tools[0].args.streamable_http_connection_params.headers.X-Api-Key: looks like a secret written out; use a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}"),
		"literal bearer":       one(web+"        headers:\n          X-Custom: Bearer hunter2hunter2\n", "9: tools[0].args.streamable_http_connection_params.headers.X-Custom: looks like a secret written out; use a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}"),
		"number as header":     one(web+"        headers:\n          Cookie: 4711\n", "9: tools[0].args.streamable_http_connection_params.headers.Cookie: the value must be text; quote it"),
		"header variable":      one(web+"        headers:\n          Authorization: Bearer ${env:HOME}\n", `9: tools[0].args.streamable_http_connection_params.headers.Authorization: secret variable "HOME" must begin with TARRY_SECRET_`),
		"header of ADK's env":  one(web+"        headers:\n          X-Team: ${TEAM}\n", "9: tools[0].args.streamable_http_connection_params.headers.X-Team: contains ${ that begins no reference; there are ${env:TARRY_SECRET_NAME} and ${file:NAME}"),

		"scheme without type":        one(web+"      auth_scheme: {flows: {}}\n", "8: tools[0].args.auth_scheme: has no type; write oauth2, openIdConnect, apiKey, http"),
		"scheme of ADK":              one(web+"      auth_scheme: {type: gcpAuthProviderScheme}\n", "8: tools[0].args.auth_scheme.type: ADK knows gcpAuthProviderScheme, Tarry does not yet; there are oauth2, openIdConnect, apiKey, http"),
		"scheme unknown":             one(web+"      auth_scheme: {type: oauth}\n", `8: tools[0].args.auth_scheme.type: there is no scheme "oauth"; did you mean oauth2?`),
		"flow of ADK":                one(web+"      auth_scheme: {type: oauth2, flows: {implicit: {}}}\n", "8: tools[0].args.auth_scheme.flows.implicit: ADK knows this key, Tarry does not yet; use authorizationCode"),
		"no flows":                   one(web+"      auth_scheme: {type: oauth2}\n", "8: tools[0].args.auth_scheme: has no flows; write flows with authorizationCode"),
		"no endpoints":               one(web+"      auth_scheme:\n        type: oauth2\n        flows: {authorizationCode: {authorizationUrl: 'javascript:x'}}\n      auth_credential: {oauth2: {client_id: c}}\n", "10: tools[0].args.auth_scheme.flows.authorizationCode.authorizationUrl: not an http(s) URL without user name and password", "10: tools[0].args.auth_scheme.flows.authorizationCode.tokenUrl: missing"),
		"no client":                  one(web+"      auth_scheme: {type: openIdConnect, issuerUrl: 'https://i.example'}\n", "6: tools[0].args.auth_credential.oauth2.client_id: missing; register a client at the provider"),
		"openid without url":         one(web+"      auth_scheme: {type: openIdConnect}\n      auth_credential: {oauth2: {client_id: c}}\n", "8: tools[0].args.auth_scheme: give authorization_endpoint and token_endpoint, or an issuer to discover them from"),
		"openid wrong url":           one(web+"      auth_scheme: {type: openIdConnect, openIdConnectUrl: 'https://i.example'}\n", `8: tools[0].args.auth_scheme.openIdConnectUrl: "https://i.example" does not end in /.well-known/openid-configuration; write issuerUrl instead`),
		"literal secret":             one(web+"      auth_credential:\n        oauth2:\n          client_id: c\n          client_secret: hunter2\n", "11: tools[0].args.auth_credential.oauth2.client_secret: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"number as secret":           one(web+"      auth_credential: {oauth2: {client_id: c, client_secret: 4711}}\n", "8: tools[0].args.auth_credential.oauth2.client_secret: the value must be text; quote it"),
		"secret in client_id":        one(web+"      auth_credential: {oauth2: {client_id: '${env:TARRY_SECRET_X}'}}\n", "8: tools[0].args.auth_credential.oauth2.client_id: secret references may stand in client_secret, api_key, credentials, headers and env only; take it out"),
		"secret file outside":        one(web+"      auth_credential: {oauth2: {client_id: c, client_secret: '${file:../x}'}}\n", `8: tools[0].args.auth_credential.oauth2.client_secret: secret file "../x" must be a path below the secrets folder`),
		"secret alone":               one(web+"      auth_credential: {oauth2: {client_secret: '${file:x}'}}\n", "8: tools[0].args.auth_credential.oauth2.client_id: missing; a client secret belongs to a registered client"),
		"issued token":               one(web+"      auth_credential: {oauth2: {client_id: c, accessToken: hunter2}}\n", "8: tools[0].args.auth_credential.oauth2.accessToken: comes from a login and is kept in the vault; remove it"),
		"audience":                   one(web+"      auth_credential: {oauth2: {client_id: c, audience: x}}\n", "8: tools[0].args.auth_credential.oauth2.audience: ADK knows this key, Tarry does not yet; name the resource in tarry"),
		"api key":                    one(web+"      auth_credential: {auth_type: apiKey, api_key: hunter2}\n", "8: tools[0].args.auth_credential.auth_type: apiKey needs an auth_scheme of type apiKey, which says where it is sent"),
		"key":                        one(web+"      auth_credential: {api_key: hunter2}\n", "8: tools[0].args.auth_credential.api_key: needs an auth_scheme of type apiKey, which says where it is sent"),
		"literal api key":            one(web+key+"      auth_credential:\n        auth_type: apiKey\n        api_key: hunter2\n", "11: tools[0].args.auth_credential.api_key: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"key in the body":            one(web+"      auth_scheme: {type: apiKey, in: body, name: k}\n", `8: tools[0].args.auth_scheme.in: "body" is not one of header, query, cookie`),
		"key without name":           one(web+"      auth_scheme: {type: apiKey, in: query}\n", "8: tools[0].args.auth_scheme.name: missing; write what the server calls the query"),
		"key in a protocol header":   one(web+"      auth_scheme: {type: apiKey, in: header, name: Mcp-Session-Id}\n", "8: tools[0].args.auth_scheme.name: Mcp-Session-Id says something else to the server; name the header that the server wants the key in"),
		"key with scopes":            one(web+key+"      tarry: {max_scopes: [read]}\n", "9: tools[0].args.tarry.max_scopes: belongs to a login at a provider; apiKey has none, remove it"),
		"key with client":            one(web+key+client, "9: tools[0].args.auth_credential.oauth2: belongs to a login at a provider; apiKey has none, remove it"),
		"http without scheme":        one(web+"      auth_scheme: {type: http}\n", `8: tools[0].args.auth_scheme.scheme: "" is not one of basic, bearer`),
		"http digest":                one(web+"      auth_scheme: {type: http, scheme: digest}\n", `8: tools[0].args.auth_scheme.scheme: "digest" is not one of basic, bearer`),
		"literal password":           one(web+basic+"      auth_credential: {auth_type: http, http: {scheme: basic, credentials: {username: me, password: hunter2}}}\n", "9: tools[0].args.auth_credential.http.credentials.password: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"password alone":             one(web+basic+"      auth_credential: {http: {credentials: {password: '${file:x}'}}}\n", "9: tools[0].args.auth_credential.http.credentials.username: missing; the password is one user's. Write it, or leave out both and the person is asked"),
		"user alone":                 one(web+basic+"      auth_credential: {http: {credentials: {username: me}}}\n", "9: tools[0].args.auth_credential.http.credentials.password: missing; give it as a reference, or leave out username too and the person is asked"),
		"token for basic":            one(web+basic+"      auth_credential: {http: {credentials: {token: hunter2}}}\n", "9: tools[0].args.auth_credential.http.credentials.token: the scheme has no token; remove it or change the scheme"),
		"literal token":              one(web+"      auth_scheme: {type: http, scheme: bearer}\n      auth_credential: {authType: http, http: {credentials: {token: hunter2}}}\n", "9: tools[0].args.auth_credential.http.credentials.token: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"other scheme":               one(web+basic+"      auth_credential: {http: {scheme: bearer}}\n", "9: tools[0].args.auth_credential.http.scheme: is not that of auth_scheme; remove it"),
		"credential as text":         one(web+"      auth_credential: hunter2\n", "8: tools[0].args.auth_credential: the value must be a mapping (keys with values)"),
		"client auth of ADK":         one(web+"      auth_credential: {oauth2: {client_id: c, token_endpoint_auth_method: client_secret_jwt}}\n", "8: tools[0].args.auth_credential.oauth2.token_endpoint_auth_method: ADK knows client_secret_jwt, Tarry does not; use private_key_jwt, client_secret_basic, client_secret_post or none"),
		"client auth unknown":        one(web+"      auth_credential: {oauth2: {client_id: c, token_endpoint_auth_method: x}}\n", `8: tools[0].args.auth_credential.oauth2.token_endpoint_auth_method: "x" is not one of client_secret_basic, client_secret_post, private_key_jwt, none`),
		"literal key":                one(web+"      auth_credential:\n        oauth2:\n          client_id: c\n          token_endpoint_auth_method: private_key_jwt\n          privateKey: hunter2\n", "6: tools[0].args.tarry.issuer: missing; a client with a private key is bound to one issuer, or it would sign for any that a server names", "12: tools[0].args.auth_credential.oauth2.privateKey: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"key without method":         one(web+"      auth_credential: {oauth2: {client_id: c, private_key: '${file:k.pem}'}}\n", "8: tools[0].args.auth_credential.oauth2.token_endpoint_auth_method: must be private_key_jwt where there is a private_key"),
		"audience of assertions":     one(web+"      tarry: {assertion_audience: me}\n", `8: tools[0].args.tarry.assertion_audience: "me" is not one of issuer, token_endpoint`),
		"service account literal":    one(web+"      auth_credential: {auth_type: serviceAccount, service_account: {service_account_credential: hunter2, scopes: [a]}}\n", "8: tools[0].args.auth_credential.service_account.service_account_credential: secret must be a reference such as ${env:TARRY_SECRET_NAME} or ${file:NAME}, not a literal"),
		"service account, nothing":   one(web+"      auth_credential: {auth_type: serviceAccount, service_account: {scopes: [a]}}\n", "8: tools[0].args.auth_credential.service_account.service_account_credential: missing; refer to the JSON of the account's key"),
		"default credential":         one(web+"      auth_credential: {auth_type: serviceAccount, service_account: {use_default_credential: true}}\n", "8: tools[0].args.auth_credential.service_account.use_default_credential: ADK knows this key, Tarry does not yet; refer to a key with service_account_credential", "8: tools[0].args.auth_credential.service_account.service_account_credential: missing; refer to the JSON of the account's key", "8: tools[0].args.auth_credential.service_account.scopes: missing; an access token of Google's is for scopes"),
		"scopes too wide":            one(web+"      auth_scheme:\n        type: openIdConnect\n        issuerUrl: https://i.example\n        scopes: [openid, all]\n      auth_credential: {oauth2: {client_id: c}}\n      tarry:\n        max_scopes: [openid]\n", "14: tools[0].args.tarry.max_scopes: all not in max_scopes"),
		"tarry is a list":            one(web+"      tarry: [lazy]\n", "8: tools[0].args.tarry: a list must be a mapping (keys with values)"),
		"lazy is text":               one(web+"      tarry: {lazy: 'yes'}\n", `8: tools[0].args.tarry.lazy: "yes" must be true or false`),
		"two flows":                  one(web+"      auth_scheme: {type: oauth2, flows: {clientCredentials: {}, authorizationCode: {}}}\n", "8: tools[0].args.auth_scheme.flows: has two flows; keep authorizationCode, which asks a person, or clientCredentials, which does not"),
		"client flow without url":    one(web+"      auth_scheme: {type: oauth2, flows: {clientCredentials: {}}}\n"+client, "8: tools[0].args.auth_scheme.flows.clientCredentials.tokenUrl: missing"),
		"client flow without secret": one(web+"      auth_scheme: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://t'}}}\n      auth_credential: {oauth2: {client_id: c}}\n", "9: tools[0].args.auth_credential.oauth2.client_secret: missing; client credentials are proven by it"),
		"client flow and login url":  one(web+"      auth_scheme: {type: oauth2, flows: {clientCredentials: {authorizationUrl: 'https://a', tokenUrl: 'https://t'}}}\n"+client, "8: tools[0].args.auth_scheme.flows.clientCredentials.authorizationUrl: ADK knows this key, Tarry does not yet; nobody is asked"),
		"grant unknown":              one(web+client+"      tarry: {grant: password, issuer: 'https://i'}\n", `9: tools[0].args.tarry.grant: "password" is not one of authorization_code, client_credentials, device_code`),
		"grant of another kind":      one(web+"      auth_scheme: {type: oauth2, flows: {clientCredentials: {tokenUrl: 'https://t'}}}\n"+client+"      tarry: {grant: authorization_code}\n", "10: tools[0].args.tarry.grant: auth_scheme has a flow of another kind; remove one"),
		"grant without client":       one(web+"      tarry: {grant: client_credentials, issuer: 'https://i'}\n", "6: tools[0].args.auth_credential.oauth2.client_id: missing; client credentials are those of a registered client", "6: tools[0].args.auth_credential.oauth2.client_secret: missing; client credentials are proven by it"),
		"grant without issuer":       one(web+client+"      tarry: {grant: client_credentials}\n", "6: tools[0].args.tarry.issuer: missing; a client with a secret is bound to one issuer, or any server could be sent the secret"),
		"pkce of written endpoints":  one(web+"      auth_scheme: {type: openIdConnect, issuerUrl: 'https://i.example'}\n"+client+"      tarry:\n        allow_missing_pkce: true\n        legacy_authorization: true\n", "11: tools[0].args.tarry.allow_missing_pkce: only the provider that an MCP server names is checked for PKCE; remove it", "12: tools[0].args.tarry.legacy_authorization: the endpoints do not come from the MCP server; remove it or auth_scheme"),
		"omit_resource as text":      one(web+"      tarry: {omit_resource: 1}\n", `8: tools[0].args.tarry.omit_resource: "1" must be true or false`),
		"confirmation as text":       one(web+"      require_confirmation: sometimes\n", `8: tools[0].args.require_confirmation: "sometimes" must be true or false`),
		"confirm beside all":         one(web+"      require_confirmation: true\n      tarry: {confirm: [x]}\n", "9: tools[0].args.tarry.confirm: names tools, but require_confirmation asks for all of them; remove one"),
		"confirm of what is hidden":  one(web+"      tool_filter: [x]\n      tarry: {confirm: [y]}\n", `9: tools[0].args.tarry.confirm: "y" is not in tool_filter, so no model can call it; write the server's name of a tool, without tool_name_prefix`),
		"confirm twice":              one(web+"      tarry: {confirm: [x, x]}\n", `8: tools[0].args.tarry.confirm: names "x" twice`),
		"unknown in toolset's tarry": one(web+"      tarry: {scopes: [x]}\n", "8: tools[0].args.tarry.scopes: unknown key; known: accept_defaults, allow_missing_pkce, assertion_audience, confirm, credential_domain, grant, issuer, lazy, legacy_authorization, max_scopes, omit_resource, resource, use_id_token"),

		"sub agents as map": one("agent_class: LoopAgent\nname: a\nsub_agents: {config_path: b.yaml}\n", "3: sub_agents: a mapping must be a list (lines that begin with a dash)"),
		"sub agent as text": one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - b.yaml\n", `4: sub_agents[0]: "b.yaml" must be a mapping (keys with values)`),
		"code":              one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - code: x.y\n", "4: sub_agents[0].code: ADK knows this key, Tarry does not yet; write the sub-agent as a YAML file and name it with config_path"),
		"no config_path":    one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config: x\n", "4: sub_agents[0].config: unknown key; known: config_path", "4: sub_agents[0]: has no config_path; name the sub-agent's file"),
		"absolute":          one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: /etc/passwd\n", `4: sub_agents[0].config_path: "/etc/passwd" is absolute; write it relative to this file`),
		"upwards":           one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: x/../../b.yaml\n", `4: sub_agents[0].config_path: "x/../../b.yaml" contains ..; a sub-agent's file lies beside this one or below it`),
		"backslash":         one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: x\\b.yaml\n", `4: sub_agents[0].config_path: "x\\b.yaml" contains a backslash; write / between folders`),
		"no such file":      one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: b.yaml\n", `4: sub_agents[0].config_path: there is no file "b.yaml"; paths are relative to this file`),
		"itself":            one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: root_agent.yaml\n", `4: sub_agents[0].config_path: "root_agent.yaml" is a circle: FILE is above this agent; an agent cannot be its own sub-agent`),
		"a folder":          one("agent_class: LoopAgent\nname: a\nsub_agents:\n  - config_path: .\n", `4: sub_agents[0].config_path: "." is not a file`),
		"llm with children": one(head+"sub_agents:\n  - config_path: b.yaml\n", `4: sub_agents[0].config_path: there is no file "b.yaml"; paths are relative to this file`),
	}
}

func TestBadFiles(t *testing.T) {
	t.Parallel()
	opts := yaml.Options{
		Functions: []string{"desk.open", "desk.close"}, Vars: map[string]string{"MODEL": "m", "MCP_URL": "http://localhost"},
		Schemas:   map[string]json.RawMessage{"Weather": json.RawMessage(`{"type":"object"}`)},
		Callbacks: map[agent.CallbackPoint][]string{agent.BeforeModel: {"check"}},
	}
	for name, tc := range badFiles() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, map[string]string{"root_agent.yaml": tc.content})
			def, err := yaml.LoadApp(dir, opts)
			require.Nil(t, def)
			require.Equal(t, tc.want, lines(t, dir, err))
			text := strings.ReplaceAll(err.Error(), dir, "") // the folder's name is random
			require.NotContains(t, text, "hunter2")
			require.NotContains(t, text, "4711")
		})
	}
}

// lines takes an error apart and removes the path of the root agent's file.
func lines(t *testing.T, dir string, err error) []string {
	t.Helper()
	var many interface{ Unwrap() []error }
	require.ErrorAs(t, err, &many)
	var out []string
	for _, e := range many.Unwrap() {
		var typed *yaml.Error
		require.ErrorAs(t, e, &typed)
		require.NotEmpty(t, typed.File)
		require.NotEmpty(t, typed.Problem)
		text := e.Error()
		file := filepath.Join(dir, "root_agent.yaml")
		text = strings.TrimPrefix(strings.TrimPrefix(text, file+": "), file+":")
		text = strings.ReplaceAll(text, file, "FILE")
		out = append(out, strings.ReplaceAll(text, dir+string(filepath.Separator), ""))
	}
	return out
}

func TestErrorsOfAllFilesComeTogether(t *testing.T) {
	t.Parallel()
	dir := write(t, map[string]string{
		"one/root_agent.yaml": "agent_class: LoopAgent\nname: one\nsub_agents:\n  - config_path: a.yaml\n  - config_path: b.yaml\n  - config_path: a.yaml\n",
		"one/a.yaml":          "name: same\nmodel: m\noutput_kee: x\n",
		"one/b.yaml":          "agent_class: LoopAgent\nname: same\nsub_agents:\n  - config_path: c.yaml\n",
		"one/c.yaml":          "agent_class: LoopAgent\nname: c\nsub_agents:\n  - config_path: b.yaml\n",
		"two/root_agent.yaml": "name: two\n",
	})
	_, err := yaml.Load(dir, yaml.Options{})
	require.Equal(t, []string{
		`one/root_agent.yaml:6: sub_agents[2].config_path: "a.yaml" is used twice in this app; copy the file and give the copy's agent another name`,
		"one/a.yaml:3: output_kee: unknown key; did you mean output_key?",
		`one/b.yaml:2: name: used twice in the tree; each agent needs a name of its own`,
		`one/c.yaml:4: sub_agents[0].config_path: "b.yaml" is a circle: one/b.yaml is above this agent; an agent cannot be its own sub-agent`,
		"two/root_agent.yaml:1: model: missing; set it here or on a parent, for example gemini-2.5-flash",
	}, lines(t, dir, err))
}

func TestLinksOutOfTheFolder(t *testing.T) {
	t.Parallel()
	outside := write(t, map[string]string{"root_agent.yaml": head, "b.yaml": "name: b\n"})
	dir := write(t, map[string]string{"app/root_agent.yaml": "agent_class: LoopAgent\nname: a\nmodel: m\nsub_agents:\n  - config_path: b.yaml\n"})
	require.NoError(t, os.Symlink(filepath.Join(outside, "b.yaml"), filepath.Join(dir, "app", "b.yaml")))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "linked")))
	_, err := yaml.Load(dir, yaml.Options{})
	require.Equal(t, []string{
		"linked/root_agent.yaml: a link leads out of the agents folder; copy the files into it",
		`app/root_agent.yaml:5: sub_agents[0].config_path: "b.yaml" cannot be read: path escapes from parent; it must lie in the agents folder`,
	}, lines(t, dir, err))
}

func TestFolders(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	_, err := yaml.Load(empty, yaml.Options{})
	require.EqualError(t, err, empty+": no app here: neither root_agent.yaml nor a folder with one")
	missing := filepath.Join(empty, "missing")
	_, err = yaml.Load(missing, yaml.Options{})
	require.EqualError(t, err, missing+": the agents folder cannot be opened: no such file or directory")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = yaml.LoadApp(empty, yaml.Options{})
	require.EqualError(t, err, filepath.Join(empty, "root_agent.yaml")+": the root agent cannot be read: no such file or directory")
	bad := filepath.Join(empty, strings.Repeat("x", 65))
	require.NoError(t, os.Mkdir(bad, 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(bad, "root_agent.yaml"), []byte(head), 0o600))
	_, err = yaml.Load(empty, yaml.Options{})
	var typed *yaml.Error
	require.ErrorAs(t, err, &typed)
	require.Equal(t, "the folder's name is the app's: app id is 65 bytes long, at most 64 are allowed; rename the folder", typed.Problem)
}
