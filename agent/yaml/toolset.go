package yaml

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"tarry/agent"
)

// connections are the four ways to name a server; exactly one must be there.
func connections() []string {
	return []string{
		"streamable_http_connection_params", "sse_connection_params", "stdio_connection_params", "stdio_server_params",
	}
}

func (l *loader) toolset(tool *object, field string) *agent.MCPToolset {
	args, ok := tool.get("args")
	if !ok {
		tool.fail("McpToolset needs args with one of %s", strings.Join(connections(), ", "))
		return nil
	}
	o := args.object(nil)
	if o == nil {
		return nil
	}
	o.only(append(connections(), "tool_filter", "tool_name_prefix", "auth_scheme", "auth_credential", "credential_key", "require_confirmation", "tarry"),
		map[string]string{
			"tool_list_cache_ttl_seconds": "tools are listed once per invocation", "use_mcp_resources": "",
			"header_provider":   "write headers into the connection params",
			"connection_params": "write streamable_http_connection_params", "errlog": "",
			"progress_callback": "", "sampling_callback": "", "sampling_capabilities": "", "elicitation_callback": "",
		})
	m := &agent.MCPToolset{Filter: o.texts("tool_filter"), NamePrefix: o.text("tool_name_prefix"), RequireConfirmation: o.flag("require_confirmation")}
	if v, ok := o.get("tool_name_prefix"); ok {
		v.place(field + ".tool_name_prefix")
	}
	if f, ok := o.get("tool_filter"); ok && len(m.Filter) == 0 && !slices.Contains(o.doc.bad, f.path) {
		f.fail("is empty and would hide every tool; leave it out to show all")
	}
	if !l.connection(o, field, m) {
		return nil
	}
	manners(o, field, m)
	m.Auth = l.auth(o, field)
	return m
}

func (l *loader) connection(o *object, field string, m *agent.MCPToolset) bool {
	var given []string
	for _, key := range connections() {
		if o.has(key) {
			given = append(given, key)
		}
	}
	if len(given) != 1 {
		found := "none"
		if len(given) > 0 {
			found = strings.Join(given, " and ")
		}
		o.fail("needs exactly one of %s; found %s", strings.Join(connections(), ", "), found)
		return false
	}
	v := o.fields[given[0]]
	v.place(field)
	if strings.HasPrefix(given[0], "stdio") && !l.opts.AllowStdio {
		v.fail("starts a command on this machine, which is off; use an HTTP server, or have the operator allow stdio servers")
		return false
	}
	p := v.object(nil)
	if p == nil {
		return false
	}
	switch given[0] {
	case "streamable_http_connection_params":
		m.Transport = agent.TransportStreamableHTTP
		p.only([]string{"url", "headers", "timeout", "sse_read_timeout", "terminate_on_close"}, map[string]string{"httpx_client_factory": ""})
		if t, ok := p.get("terminate_on_close"); ok && !t.boolean() && !slices.Contains(o.doc.bad, t.path) {
			t.fail("ADK knows false, Tarry does not yet; remove it")
		}
		l.http(p, field, m)
	case "sse_connection_params":
		m.Transport = agent.TransportSSE
		p.only([]string{"url", "headers", "timeout", "sse_read_timeout"}, map[string]string{"httpx_client_factory": ""})
		l.http(p, field, m)
	case "stdio_connection_params":
		p.only([]string{"server_params", "timeout"}, nil)
		m.Timeout = p.seconds("timeout")
		server, ok := p.get("server_params")
		if !ok {
			p.fail("has no server_params; name the command there")
			return false
		}
		return l.stdio(server, field, m)
	default:
		return l.stdio(v, field, m)
	}
	return true
}

func (o *object) seconds(key string) time.Duration {
	if v, ok := o.get(key); ok {
		return v.seconds()
	}
	return 0
}

func (l *loader) http(p *object, field string, m *agent.MCPToolset) {
	m.Timeout, m.ReadTimeout = p.seconds("timeout"), p.seconds("sse_read_timeout")
	m.Headers = secrets(p, "headers", field)
	v, ok := p.get("url")
	if !ok {
		p.fail("has no url; name the MCP server's")
		p.doc.bad = append(p.doc.bad, field+".url")
		return
	}
	v.place(field + ".url")
	m.URL = v.expanded(l.opts.Vars)
	if slices.Contains(p.doc.bad, v.path) {
		return
	}
	if u, err := url.Parse(m.URL); err == nil {
		for name := range u.Query() {
			if agent.SecretName(name) {
				v.hide()
				v.fail("holds a secret in its query (%s); send it in headers, as a secret reference", name)
				return
			}
		}
	}
}

func (l *loader) stdio(v value, field string, m *agent.MCPToolset) bool {
	o := v.object(nil)
	if o == nil {
		return false
	}
	o.only([]string{"command", "args", "env"}, map[string]string{"cwd": "", "encoding": "", "encoding_error_handler": ""})
	m.Transport = agent.TransportStdio
	m.Command, m.Args = o.text("command"), o.texts("args")
	m.Env = secrets(o, "env", field)
	if c, ok := o.get("command"); ok {
		c.place(field + ".command")
	} else {
		v.place(field + ".command")
	}
	return true
}

// secrets reads headers or variables, whose values may hold secret references.
func secrets(o *object, key, field string) map[string]agent.SecretTemplate {
	v, ok := o.get(key)
	if !ok {
		return nil
	}
	v.hide()
	v.place(field + "." + key)
	entries := v.object(nil)
	if entries == nil {
		return nil
	}
	out := map[string]agent.SecretTemplate{}
	for _, name := range entries.order {
		entry := entries.fields[name]
		entry.place(field + "." + key + "." + name)
		out[name] = agent.SecretTemplate(entry.secret())
	}
	return out
}
