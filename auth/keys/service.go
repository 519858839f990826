package keys

import (
	"context"
	"errors"
	"log/slog"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
)

// ErrNotKey says that a request asks for something else than a credential that is typed in.
var ErrNotKey = errors.New("keys: the request asks for no key")

// Vault encrypts what the store keeps. [vault.Vault] is one.
type Vault interface {
	Seal(plain auth.Secret, ad vault.AD) ([]byte, error)
	Open(cipher []byte, ad vault.AD) (auth.Secret, error)
}

// Store keeps requests and grants; those of logins are the same. Every method is one transaction with its audit row in it.
type Store interface {
	// Behind lists the open requests behind the link of a request that access allows, oldest first; when none is open, that
	// request alone.
	Behind(ctx context.Context, id string, access auth.Access) ([]auth.Request, error)
	// Request returns a request that access allows.
	Request(ctx context.Context, id string, access auth.Access) (auth.Request, error)
	// Grants lists the owner's grants that match q, newest first.
	Grants(ctx context.Context, q oauth.GrantQuery) ([]oauth.Grant, error)
	// Used records which run and tool got a grant's secret.
	Used(ctx context.Context, g oauth.Grant, use oauth.Use) error
	// Drop removes a grant that is still at version.
	Drop(ctx context.Context, owner agent.Owner, id string, version int64, reason string) error
	// EnterKey stores the grant, ends as granted every open request of the slot and writes the messages that wake their runs.
	// A request that is not pending in the grant's slot, or whose deadline is over, is [oauth.ErrConflict].
	EnterKey(ctx context.Context, id string, access auth.Access, g oauth.Grant) error
	// RefuseKey ends as denied the open requests behind the link of a request up to the one that is shown, all of them where
	// that names none, with the messages that tell their runs. A request that is not pending is [oauth.ErrConflict].
	RefuseKey(ctx context.Context, id string, access auth.Access, shown string) error
}

// Service takes keys and gives them out. All fields without a stated default must be set. Safe for concurrent use.
type Service struct {
	Store Store
	Vault Vault
	// Secrets resolves the references of definitions.
	Secrets func(ctx context.Context, source agent.Source) (auth.Secret, error)
	// Wake is called after messages to runs were stored; nil means that somebody polls.
	Wake func()
	Log  *slog.Logger
}

// sound says whether a request is one of ours, asked of the person whose key it is for.
func sound(r auth.Request) bool {
	n := r.Need
	return n.Typed != nil && n.Slot.Owner == r.Owner && n.Slot.Client == n.Typed.Client()
}
