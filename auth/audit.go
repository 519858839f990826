package auth

import (
	"errors"
	"time"

	"tarry/agent"
)

// AuditRow says what happened to a request or a credential. It holds no secret.
type AuditRow struct {
	At      time.Time
	Owner   agent.Owner
	Session string
	Request string
	// Action is "asked", "opened", "refused", "granted", "denied", "expired", "used" and so on; Detail a reason or a name.
	Action string
	Detail string
	// Actor is the subject of the person or service that did it; empty for what runs and deadlines do. See [WithActor].
	Actor string
}

// AuditQuery selects audit rows; empty fields match any. Since is inclusive, Until is not.
type AuditQuery struct {
	App, User, Action string
	Since, Until      time.Time
	// After is the [AuditPage.Next] of the page before; empty means from the beginning.
	After string
}

// AuditPage is a part of the audit log, oldest first.
type AuditPage struct {
	Rows []AuditRow
	// Next is where the next page begins, also when there is none yet.
	Next string
	// More says that there may be more already; a page can be empty all the same.
	More bool
}

// ErrCursor says that a cursor was not one that a page had.
var ErrCursor = errors.New("auth: unknown cursor")
