package notify

import (
	"slices"
	"strings"

	"tarry/auth"
)

// What happens to a request.
const (
	Asked    = "asked"
	Expiring = "expiring"
)

// TypeOf names what happened to a request as webhooks do: what is Asked, Expiring or the status in which it ended.
func TypeOf(n auth.Need, what string) string {
	var asked, kind string
	switch n.Type {
	case auth.TypeConfirmation:
		asked, kind = "run.approval_required", "approval"
	case auth.TypeInput, auth.TypeQuestion:
		asked, kind = "run.input_required", "input"
	case auth.TypeResult:
		asked, kind = "run.result_required", "result"
	default:
		asked, kind = "run.auth_required", "credential"
	}
	if what == Asked {
		return asked
	}
	return kind + "." + what
}

// Types lists every type.
func Types() (out []string) {
	for _, need := range []string{"", auth.TypeConfirmation, auth.TypeInput, auth.TypeResult} {
		for _, what := range []string{Asked, Expiring, string(auth.StatusGranted), string(auth.StatusDenied), string(auth.StatusExpired), string(auth.StatusCancelled)} {
			out = append(out, TypeOf(auth.Need{Type: need}, what))
		}
	}
	return out
}

// Takes says whether an endpoint wants to know of something of an app.
func (e Endpoint) Takes(app, kind string) bool {
	return slices.ContainsFunc(e.Apps, func(a string) bool { return a == all || a == app }) && (len(e.Types) == 0 || slices.ContainsFunc(e.Types, func(p string) bool { return match(p, kind) }))
}

const all = "*"

func match(pattern, kind string) bool {
	prefix, open := strings.CutSuffix(pattern, all)
	return pattern == kind || open && strings.HasPrefix(kind, prefix)
}
