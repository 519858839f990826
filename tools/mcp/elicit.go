package mcp

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"tarry/internal/form"
	"tarry/tools"
)

// Bounds of what a server may want of a person in one call, in bytes but for maxInputs. All of it is kept while the call
// waits, and somebody has to read it.
const (
	maxInputs  = 8
	maxKey     = 256
	maxMessage = 4 << 10
	maxURL     = 4 << 10
	maxSchema  = 32 << 10
	maxState   = 64 << 10
)

// round is what goes along with a call that is made again: the server's requestState, unread, and the answers.
type round struct {
	state   string
	answers map[string]tools.InputAnswer
}

// resumed checks what a person did.
func resumed(what string, r *tools.Resume) (round, error) {
	if r == nil {
		return round{}, nil
	}
	out := round{state: r.State, answers: map[string]tools.InputAnswer{}}
	for key, answer := range r.Answers {
		switch answer.Action {
		case tools.InputAccept:
		case tools.InputDecline, tools.InputCancel:
			answer.Content = nil
		default:
			return round{}, tools.Errorf("%s: the answer to %q has the action %q, which is not accept, decline or cancel", what, cut(key, maxKey), cut(answer.Action, 32))
		}
		out.answers[key] = answer
	}
	return out, nil
}

func (r round) responses() sdk.InputResponseMap {
	if len(r.answers) == 0 {
		return nil
	}
	out := sdk.InputResponseMap{}
	for key, a := range r.answers {
		out[key] = &sdk.ElicitResult{Action: a.Action, Content: a.Content}
	}
	return out
}

// asked answers what needs nobody. When a person is needed for the rest, the error is a [*tools.InputRequiredError].
func (t *toolset) asked(what string, res *sdk.CallToolResult) (round, error) {
	next := round{state: res.RequestState, answers: map[string]tools.InputAnswer{}}
	switch {
	case len(res.RequestState) > maxState:
		return round{}, tools.Errorf("%s: the server wants %d bytes kept until a person has answered; at most %d are", what, len(res.RequestState), maxState)
	case len(res.InputRequests) > maxInputs:
		return round{}, tools.Errorf("%s: the server wants %d things of a person at once; at most %d are allowed", what, len(res.InputRequests), maxInputs)
	case len(res.InputRequests) == 0 && res.RequestState == "":
		return round{}, tools.Errorf("%s: the server wants input and does not say which", what)
	}
	var inputs []tools.Input
	for _, key := range slices.Sorted(maps.Keys(res.InputRequests)) {
		p, ok := res.InputRequests[key].(*sdk.ElicitParams)
		if !ok {
			return round{}, tools.Errorf("%s: the server wants something that is not offered here (sampling or roots); it may send a person to a URL or show a form", what)
		}
		in, err := t.input(what, key, p)
		if err != nil {
			return round{}, err
		}
		if in.Mode == tools.InputForm && t.def.AcceptDefaults {
			if content, ok := form.Defaults(in.Schema); ok {
				next.answers[key] = tools.InputAnswer{Action: tools.InputAccept, Content: content}
				continue
			}
		}
		inputs = append(inputs, in)
	}
	if len(inputs) == 0 {
		return next, nil
	}
	return round{}, &tools.InputRequiredError{Inputs: inputs, State: next.state, Answers: next.answers}
}

func (t *toolset) input(what, key string, p *sdk.ElicitParams) (tools.Input, error) {
	mode := p.Mode
	if mode == "" {
		mode = tools.InputForm
	}
	in := tools.Input{Key: key, Mode: mode, Message: p.Message}
	var err error
	switch mode {
	case tools.InputURL:
		in.URL = p.URL
	case tools.InputForm:
		if in.Schema, err = schema(p.RequestedSchema); err == nil {
			_, err = form.Fields(in.Schema)
		}
		if err != nil {
			return tools.Input{}, tools.Errorf("%s: the server shows a form that cannot be used: %s", what, err)
		}
	}
	return in, t.check(what, in)
}

// elicited reads error -32042 (revision 2025-11-25): the call is made again as it was when the person is back.
func (t *toolset) elicited(what string, wire *jsonrpc.Error) error {
	var data struct {
		Elicitations []sdk.ElicitParams `json:"elicitations"`
	}
	if err := json.Unmarshal(wire.Data, &data); err != nil || len(data.Elicitations) == 0 {
		return tools.Errorf("%s: the server wants a person to visit a URL (error %d) and names none", what, wire.Code)
	}
	if n := len(data.Elicitations); n > maxInputs {
		return tools.Errorf("%s: the server wants a person to visit %d URLs at once; at most %d are allowed", what, n, maxInputs)
	}
	out := &tools.InputRequiredError{Plain: true}
	for i := range data.Elicitations {
		p := &data.Elicitations[i]
		in := tools.Input{Key: p.ElicitationID, Mode: p.Mode, Message: p.Message, URL: p.URL}
		if in.Mode == "" {
			in.Mode = tools.InputURL
		}
		if in.Mode != tools.InputURL {
			return tools.Errorf("%s: the server wants input of mode %q with error %d; only %q is possible there", what, cut(p.Mode, 32), wire.Code, tools.InputURL)
		}
		if err := t.check(what, in); err != nil {
			return err
		}
		out.Inputs = append(out.Inputs, in)
	}
	return out
}

// check judges what all kinds have in common. Its errors repeat nothing of a URL but scheme and host.
func (t *toolset) check(what string, in tools.Input) error {
	switch {
	case in.Mode != tools.InputURL && in.Mode != tools.InputForm:
		return tools.Errorf("%s: the server wants input of mode %q; known are %q and %q", what, cut(in.Mode, 32), tools.InputURL, tools.InputForm)
	case len(in.Key) > maxKey:
		return tools.Errorf("%s: the server names a request for input with %d bytes; at most %d are allowed", what, len(in.Key), maxKey)
	case len(in.Message) > maxMessage:
		return tools.Errorf("%s: the server's message to a person has %d bytes; at most %d are allowed", what, len(in.Message), maxMessage)
	case len(in.Schema) > maxSchema:
		return tools.Errorf("%s: the server's form has %d bytes; at most %d are allowed", what, len(in.Schema), maxSchema)
	case in.Mode == tools.InputURL:
		if reason := badURL(in.URL, t.opener.cfg.AllowLoopback); reason != "" {
			return tools.Errorf("%s: the server wants a person to visit a URL that is not shown: %s", what, reason)
		}
	}
	return nil
}

// badURL says why a person must not be sent to raw, or "". The person's browser goes there, not this process, so addresses
// that are private here may be right there.
func badURL(raw string, loopback bool) string {
	if raw == "" {
		return "it is missing"
	}
	if len(raw) > maxURL {
		return fmt.Sprintf("it has %d bytes; at most %d are allowed", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return "it is not valid"
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Sprintf("its scheme is %q, not https", cut(u.Scheme, 32))
	case u.Opaque != "" || u.Hostname() == "":
		return "it has no host"
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r > unicode.MaxASCII }):
		return "its host is not written in ASCII (Punycode), so a browser may read it otherwise"
	case strings.ContainsFunc(raw, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }):
		return "it has invisible characters"
	case u.User != nil:
		return "it has user information before the host, which hides where it leads"
	case u.Scheme == "http" && (!loopback || !isLoopback(u.Hostname())):
		return "its scheme is http, not https"
	}
	return ""
}

func isLoopback(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && addr.Unmap().IsLoopback()
}
