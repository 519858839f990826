package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/discovery"
)

// Errors of a [Store].
var (
	// ErrNotFound: there is no such row, or the caller may not know of it.
	ErrNotFound = fmt.Errorf("oauth: not found: %w", auth.ErrNoRequest)
	// ErrConflict: the row is not in the state that the change starts from; read it again.
	ErrConflict = errors.New("oauth: state changed")
	// ErrTooMany: the request has too many live flows.
	ErrTooMany = errors.New("oauth: too many logins begun")
)

// Store keeps requests, flows, grants and registrations. Every method is one transaction with its audit row in it, safe
// for concurrent use by several processes. Byte fields are ciphertext; the store never sees a secret. Leases and ages are
// measured by the store's one clock: those of the processes may differ by minutes.
type Store interface {
	AccountStore
	ParkingStore

	// Request returns a request that access allows.
	Request(ctx context.Context, id string, access auth.Access) (auth.Request, error)
	// Requests lists an owner's requests, newest first; open ones only if onlyOpen.
	Requests(ctx context.Context, owner agent.Owner, onlyOpen bool, limit int) ([]auth.Request, error)

	// Behind lists the open requests behind the link of a request that access allows, oldest first; when none is open, that
	// request alone. The first is the one to answer: its login answers them all.
	Behind(ctx context.Context, id string, access auth.Access) ([]auth.Request, error)

	// Repin moves every pending request in the slot from, whose provider is the server's to name, to the slot, provider and
	// client of to: it asks for a login there, and its flows are spent. Whose credential is there already is granted. It
	// returns how many it moved; none is [ErrConflict], and so is a login that is being completed.
	Repin(ctx context.Context, from auth.Slot, to auth.Need) (int, error)

	// BeginFlow stores a new flow of an open request; at most live flows of one request may be unexpired ([ErrTooMany]).
	// A request that is no longer pending is [ErrConflict]. Where Shown names no request behind the link, all that are open
	// now count as shown.
	BeginFlow(ctx context.Context, f Flow, live int) error
	// Flow finds a flow by the hash of its provider-facing state.
	Flow(ctx context.Context, stateHash string) (Flow, error)
	// Flows lists the flows of a request, newest first, whatever became of them.
	Flows(ctx context.Context, requestID string, limit int) ([]Flow, error)
	// Refuse records that a callback was refused. codeHash may be empty. The flow's refusal number most spends it, if it is
	// live, and leaves its request as it is; from then on nothing is recorded any more.
	Refuse(ctx context.Context, stateHash, reason, codeHash string, most int) error
	// StartExchange moves flow and request to exchanging with the encrypted code written ahead, for as long as the lease.
	// [ErrConflict] when the flow was used, its code was refused before, or the request does not wait any more.
	StartExchange(ctx context.Context, stateHash string, code []byte, codeHash string, lease time.Duration) (Flow, error)
	// Resume takes over a flow whose exchange was interrupted (lease over, not resumed before) for one retry.
	Resume(ctx context.Context, stateHash string, lease time.Duration) (Flow, error)
	// Interrupted lists flows that [Store.Resume] could take over.
	Interrupted(ctx context.Context, limit int) ([]Flow, error)
	// Reopen ends an exchange without a token: the flow is spent, the request pending again.
	Reopen(ctx context.Context, stateHash, reason string) error
	// Deny ends as denied the open requests that the flow's page showed, with the messages that tell their runs.
	Deny(ctx context.Context, stateHash, reason string) error
	// Commit stores the grant of an exchange, or of a parked flow, ends as granted every open request of the slot whose scopes it covers, and
	// writes the messages that wake their runs. The returned requests are those. [ErrOtherAccount] when the slot has a grant
	// of another account and g does not say that it replaces that one.
	Commit(ctx context.Context, stateHash string, g Grant) ([]auth.Request, error)

	// DueDevices takes up to limit live flows with a device code whose next poll is due, for as long as the lease: no two
	// callers get the same.
	DueDevices(ctx context.Context, limit int, lease time.Duration) ([]Flow, error)
	// DevicePolled sets when such a flow is due next: pace from now.
	DevicePolled(ctx context.Context, stateHash string, pace time.Duration) error
	// EndDevice spends such a flow and leaves its request as it is; [ErrConflict] when it is not live.
	EndDevice(ctx context.Context, stateHash, reason string) error

	// Keep stores a grant that no person gave, in place of the slot's former one, and returns it with its version.
	Keep(ctx context.Context, g Grant) (Grant, error)
	// Grants lists the owner's grants that match q, newest first.
	Grants(ctx context.Context, q GrantQuery) ([]Grant, error)
	// Lease reserves the refresh of a grant at version for that long; false when another has it or the version is old. The
	// grant is returned as it is now.
	Lease(ctx context.Context, owner agent.Owner, id string, version int64, lease time.Duration) (Grant, bool, error)
	// SaveRefresh replaces the tokens of a grant that is still at version; false when it is not.
	SaveRefresh(ctx context.Context, version int64, g Grant) (bool, error)
	// Release ends a lease without new tokens.
	Release(ctx context.Context, owner agent.Owner, id string, version int64) error
	// Drop removes a grant that is still at version: it is known to be dead.
	Drop(ctx context.Context, owner agent.Owner, id string, version int64, reason string) error
	// Used records which run and tool got a grant's token.
	Used(ctx context.Context, g Grant, use Use) error

	// Registration finds a dynamic client; [ErrNotFound] when there is none.
	Registration(ctx context.Context, issuer, redirectURI string) (Registration, error)
	// Register stores a dynamic client unless there is one, and returns the one that is stored.
	Register(ctx context.Context, r Registration) (Registration, error)
	// Unregister removes a registration that a provider no longer knows.
	Unregister(ctx context.Context, issuer, redirectURI, clientID string) error
	// Callback returns the issuer whose callback path ends in digest; [ErrNotFound] when no login used it.
	Callback(ctx context.Context, digest string) (issuer string, err error)
	// Callbacks lists the digests of the paths at which logins with the metadata document come back, last used first.
	Callbacks(ctx context.Context, limit int) ([]string, error)
}

// FlowStatus is where a flow is.
type FlowStatus string

// The states of a flow.
const (
	FlowLive       FlowStatus = "live"
	FlowExchanging FlowStatus = "exchanging"
	// FlowParked: the tokens are there, of another account than the slot's; the person is to say whether they replace it.
	FlowParked FlowStatus = "parked"
	FlowSpent  FlowStatus = "spent"
)

// Flow is one attempt of one browser to answer a request.
type Flow struct {
	// StateHash is the SHA-256 of the provider-facing state, in hex: the state itself is not stored.
	StateHash  string
	CookieHash string
	Request    string
	Owner      agent.Owner
	Status     FlowStatus
	// Verifier, Nonce and Code are encrypted. Code is what the provider answered: the code or, of a parked flow, the grant.
	Verifier []byte
	Nonce    []byte
	Code     []byte
	// Device is encrypted: the codes of a login on another device (RFC 8628), which is polled for at Pace. Empty for logins
	// that a browser brings back.
	Device []byte
	Pace   time.Duration
	// What the browser was sent to; the exchange uses exactly this.
	Provider     auth.Provider
	Client       auth.Client
	ClientSecret []byte // of a dynamic client, encrypted
	RedirectURI  string
	Scopes       []string
	Resource     string
	// Shown is the newest request that the person saw when the flow began: a denial is about it and those before it. It is
	// for BeginFlow alone and not read back.
	Shown string
	// Relaxed is written into the audit row of the beginning and not kept.
	Relaxed []string
	Created time.Time
	Expires time.Time
	Lease   time.Time
	Resumed bool
	// Actor is who began the flow (auth.WithActor), which the store knows by itself: what a later process makes of the flow is
	// still that person's act.
	Actor string
}

// Grant is what a login gave.
type Grant struct {
	ID      string
	Slot    auth.Slot
	Version int64
	Scopes  []string
	Access  []byte // encrypted
	Refresh []byte // encrypted; empty when there is none
	IDToken []byte // encrypted; verified before it was stored; empty when there is none
	// Account is whose account at the provider this is, from a verified ID token; the zero value when there was none. A
	// refresh does not change it.
	Account Account
	// Expires is zero when unknown. It is by the clock of the process that got the tokens, and bound to them; what decides
	// is Life.
	Expires time.Time
	// Life is how long the tokens were good for when they were stored, 0 when unknown; Age is how long ago that was.
	Life time.Duration
	Age  time.Duration
	// Provider and Client are what the tokens came from; refreshes go there and nowhere else.
	Provider     auth.Provider
	Client       auth.Client
	ClientSecret []byte
	Created      time.Time
	Updated      time.Time
	// Replaces is the id of the grant of another account that this one may replace, since its person has said so. It is for
	// Commit alone and not kept.
	Replaces string
	// Used is when the token was handed out last, to the minute; zero for never. The store keeps it by itself.
	Used time.Time
}

// Account is an account at a provider, in its words.
type Account struct {
	// Subject is the sub claim: what stays the same about the account, within its issuer (OpenID Connect Core section 2).
	Subject string
	// Label is for people: the email address if there is one, else empty. It may change, and is no proof of anything.
	Label string
}

// GrantQuery selects grants of one owner. Empty Issuer and empty Client match any.
type GrantQuery struct {
	Owner    agent.Owner
	Domain   string
	Issuer   string
	Resource string
	Client   string
}

// Registration is a dynamic client (RFC 7591).
type Registration struct {
	Issuer      string
	RedirectURI string
	ClientID    string
	Secret      []byte // encrypted; empty for a public client
	// TokenEndpoint is what Secret is bound to. It is there so that the secret can be sealed anew: whoever uses it binds it
	// to what the provider says now.
	TokenEndpoint string
	Auth          string
	Created       time.Time
	// Expires is client_secret_expires_at; zero means never.
	Expires time.Time
}

// Use is one use of a token, for the audit log.
type Use struct {
	Session string
	Agent   string
	Tool    string
}

// CallbackDigest is the last element of an issuer's callback path: one path per issuer, so that a response of one server
// cannot pass for another's where servers send no iss (RFC 9207 section 1).
func CallbackDigest(issuer string) string {
	// Metadata and definitions disagree on the slash, and an operator registers the path before any metadata is read.
	sum := sha256.Sum256([]byte(strings.TrimSuffix(issuer, "/")))
	return hex.EncodeToString(sum[:8])
}

// CallbackIssuer is what a provider's callback path is made from: its issuer. Where endpoints are written out, the issuer
// is a label that the definition chose, which may be the issuer of somebody else; the token endpoint, to which the code
// goes, then tells the two apart.
func CallbackIssuer(p auth.Provider) string {
	origin, _ := discovery.Origin(p.TokenEndpoint)
	if p.Discovered || p.TokenEndpoint == "" || origin == p.Issuer {
		return p.Issuer
	}
	return p.Issuer + " " + p.TokenEndpoint
}
