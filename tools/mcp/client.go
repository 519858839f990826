package mcp

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tarry/internal/form"
	"tarry/tools"
)

// client makes the connection's client. Roots and sampling are not offered.
func (c *conn) client() *sdk.Client {
	cfg := c.opener.cfg
	elicitation := &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}
	if c.def.AcceptDefaults {
		elicitation.Form = &sdk.FormElicitationCapabilities{}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: cfg.ClientName, Version: cfg.ClientVersion}, &sdk.ClientOptions{
		Capabilities:       &sdk.ClientCapabilities{Elicitation: elicitation},
		ElicitationHandler: c.elicit,
		ProgressNotificationHandler: func(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
			c.progress(req.Params.ProgressToken)
		},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, // it would ask within the call
	})
	client.AddSendingMiddleware(offerForms)
	client.AddReceivingMiddleware(c.hear)
	return client
}

// offerForms tells servers of revision 2026-07-28 that forms are possible always: they get their answer with a repeated
// call, which may come days later. Older ones wait for it in a live session, where nobody answers but defaults.
func offerForms(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "server/discover", "tools/list", "tools/call":
			// Only the new revision says in each request what the client can do.
			if meta := req.GetParams().GetMeta(); meta[sdk.MetaKeyClientCapabilities] != nil {
				// A map: sdk.ClientCapabilities would be written with "roots", which is not offered.
				meta[sdk.MetaKeyClientCapabilities] = map[string]any{"elicitation": map[string]any{"form": struct{}{}, "url": struct{}{}}}
			}
		}
		return next(ctx, method, req)
	}
}

// hear answers elicitation without go-sdk's own check of the answer, which follows references in the server's schema: one
// that refers to itself would end this process.
func (c *conn) hear(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if ask, ok := req.(*sdk.ElicitRequest); ok && ask.Params != nil {
			return c.elicit(ctx, ask)
		}
		return next(ctx, method, req)
	}
}

// elicit answers a server that asks within a call and waits. A person cannot be waited for like that: the session would
// have to outlive this process.
func (c *conn) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	action := tools.InputCancel
	var content map[string]any
	if req.Params.Mode != tools.InputURL && c.def.AcceptDefaults {
		action = tools.InputDecline
		if raw, err := schema(req.Params.RequestedSchema); err == nil {
			if filled, ok := form.Defaults(raw); ok {
				action, content = tools.InputAccept, filled
			}
		}
	}
	mode := req.Params.Mode
	switch {
	case mode != tools.InputURL:
		mode = tools.InputForm
	case c.visited(req.Params.URL):
		action = tools.InputAccept
	}
	c.opener.cfg.Log.InfoContext(ctx, "mcp server asked for input within a call", "toolset", c.def.Name, "tools", c.tools(), "mode", mode, "answer", action)
	return &sdk.ElicitResult{Action: action, Content: content}, nil
}

// run keeps the attempt until the returned function is called: a server that asks or reports something does so in a
// session, not in a call. token is what it names the call by.
func (c *conn) run(a *attempt) (token string, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	token = strconv.FormatInt(c.calls, 10)
	c.running[token] = a
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.running, token)
	}
}

func (c *conn) progress(token any) {
	c.mu.Lock()
	a := c.running[fmt.Sprint(token)]
	c.mu.Unlock()
	if a != nil {
		a.heard()
	}
}

// visited says that a running call was made again after its person had been shown url, and accepted. Some servers ask for
// the same once more, within the call.
func (c *conn) visited(url string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.running {
		if slices.Contains(a.visited, url) {
			return true
		}
	}
	return false
}

// tools are those with a running call.
func (c *conn) tools() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, a := range c.running {
		out = append(out, a.want.Tool)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
