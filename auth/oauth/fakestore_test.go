package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/auth/oauth"
)

// memoryStore is an [oauth.Store] in memory, one lock around everything.
type memoryStore struct {
	due map[string]time.Time // next polls of flows
	now func() time.Time

	mu       sync.Mutex
	requests map[string]*auth.Request
	flows    map[string]*oauth.Flow
	refused  map[string]bool
	grants   []*storedGrant
	versions map[string]int64
	regs     map[string]oauth.Registration
	log      []string
	uses     []oauth.Use
	// callbacks is what a metadata document lists.
	callbacks []string
	leases    int // calls of Lease
	refusals  map[string]int
	// failures makes the next calls of a method fail.
	failures map[string]int
}

type storedGrant struct {
	oauth.Grant
	lease time.Time
}

func newMemoryStore(now func() time.Time) *memoryStore {
	return &memoryStore{
		now: now, requests: map[string]*auth.Request{}, flows: map[string]*oauth.Flow{}, refused: map[string]bool{},
		versions: map[string]int64{}, regs: map[string]oauth.Registration{}, failures: map[string]int{}, refusals: map[string]int{},
	}
}

var errDatabase = fmt.Errorf("database is down")

// enter locks, notes the call and fails it if that was ordered.
func (m *memoryStore) enter(name string) (func(), error) {
	m.mu.Lock()
	if m.failures[name] > 0 {
		m.failures[name]--
		m.mu.Unlock()
		return func() {}, errDatabase
	}
	return m.mu.Unlock, nil
}

func (m *memoryStore) fail(name string, times int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failures[name] = times
}

func (m *memoryStore) audit(format string, args ...any) {
	m.log = append(m.log, fmt.Sprintf(format, args...))
}

func (m *memoryStore) audits() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.log)
}

func (m *memoryStore) ask(r auth.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Status = auth.StatusPending
	if r.Leader == "" {
		r.Leader = r.ID
	}
	m.requests[r.ID] = &r
}

func (m *memoryStore) setStatus(id string, s auth.Status) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[id].Status = s
}

func (m *memoryStore) status(id string) auth.Status {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[id].Status
}

func (m *memoryStore) allGrants() []oauth.Grant {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []oauth.Grant
	for _, g := range m.grants {
		out = append(out, g.Grant)
	}
	return out
}

func (m *memoryStore) leased() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.leases
}

func (m *memoryStore) Request(_ context.Context, id string, access auth.Access) (auth.Request, error) {
	done, err := m.enter("Request")
	defer done()
	if err != nil {
		return auth.Request{}, err
	}
	r, ok := m.requests[id]
	if !ok || !access(r.Owner) {
		return auth.Request{}, oauth.ErrNotFound
	}
	return *r, nil
}

func (m *memoryStore) Behind(ctx context.Context, id string, access auth.Access) ([]auth.Request, error) {
	r, err := m.Request(ctx, id, access)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := []auth.Request{}
	for _, o := range m.requests {
		if o.Status.Open() && o.Owner == r.Owner && o.Leader == r.Leader {
			out = append(out, *o)
		}
	}
	slices.SortFunc(out, func(a, b auth.Request) int { return a.Created.Compare(b.Created) })
	if len(out) == 0 {
		out = append(out, r)
	}
	return out, nil
}

func (m *memoryStore) Repin(_ context.Context, from auth.Slot, to auth.Need) (n int, err error) {
	done, err := m.enter("Repin")
	defer done()
	if err != nil {
		return 0, err
	}
	for _, r := range m.requests {
		if r.Status == auth.StatusPending && r.Need.Slot == from && r.Need.Movable {
			r.Need.Slot, r.Need.Provider, r.Need.Client, r.Need.Refused = to.Slot, to.Provider, to.Client, 0
			n++
			for _, f := range m.flows {
				if f.Request == r.ID {
					f.Status = oauth.FlowSpent
				}
			}
		}
	}
	if n == 0 {
		return 0, oauth.ErrConflict
	}
	return n, nil
}

func (m *memoryStore) Requests(context.Context, agent.Owner, bool, int) ([]auth.Request, error) {
	return nil, nil
}

func (m *memoryStore) BeginFlow(_ context.Context, f oauth.Flow, live int) error {
	done, err := m.enter("BeginFlow")
	defer done()
	if err != nil {
		return err
	}
	if m.requests[f.Request].Status != auth.StatusPending {
		return oauth.ErrConflict
	}
	n := 0
	for _, o := range m.flows {
		if o.Request == f.Request && o.Status == oauth.FlowLive && o.Expires.After(m.now()) {
			n++
		}
	}
	if n >= live {
		return oauth.ErrTooMany
	}
	m.flows[f.StateHash] = &f
	if m.due == nil {
		m.due = map[string]time.Time{}
	}
	m.due[f.StateHash] = m.now().Add(f.Pace)
	m.audit("%s", strings.TrimSpace("opened "+strings.Join(f.Relaxed, " ")))
	return nil
}

func (m *memoryStore) Flow(_ context.Context, stateHash string) (oauth.Flow, error) {
	done, err := m.enter("Flow")
	defer done()
	if err != nil {
		return oauth.Flow{}, err
	}
	f, ok := m.flows[stateHash]
	if !ok {
		return oauth.Flow{}, oauth.ErrNotFound
	}
	return *f, nil
}

func (m *memoryStore) Flows(_ context.Context, requestID string, limit int) (out []oauth.Flow, err error) {
	done, err := m.enter("Flows")
	defer done()
	for _, f := range m.flows {
		if f.Request == requestID {
			out = append(out, *f)
		}
	}
	slices.SortFunc(out, func(a, b oauth.Flow) int { return b.Created.Compare(a.Created) })
	return out[:min(limit, len(out))], err
}

func (m *memoryStore) Refuse(ctx context.Context, stateHash, reason, codeHash string, most int) error {
	done, err := m.enter("Refuse")
	defer done()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if m.refusals[stateHash] == most {
		return nil
	}
	m.refusals[stateHash]++
	if f := m.flows[stateHash]; m.refusals[stateHash] == most && f.Status == oauth.FlowLive {
		f.Status = oauth.FlowSpent
	}
	if codeHash != "" {
		m.refused[stateHash+codeHash] = true
	}
	m.audit("refused %s", reason)
	return nil
}

func (m *memoryStore) StartExchange(_ context.Context, stateHash string, code []byte, codeHash string, lease time.Duration) (oauth.Flow, error) {
	done, err := m.enter("StartExchange")
	defer done()
	if err != nil {
		return oauth.Flow{}, err
	}
	f := m.flows[stateHash]
	r := m.requests[f.Request]
	if f.Status != oauth.FlowLive || !f.Expires.After(m.now()) || m.refused[stateHash+codeHash] || r.Status != auth.StatusPending {
		return oauth.Flow{}, oauth.ErrConflict
	}
	f.Status, f.Code, f.Lease = oauth.FlowExchanging, code, m.now().Add(lease)
	r.Status = auth.StatusExchanging
	return *f, nil
}

func (m *memoryStore) Resume(_ context.Context, stateHash string, lease time.Duration) (oauth.Flow, error) {
	done, err := m.enter("Resume")
	defer done()
	if err != nil {
		return oauth.Flow{}, err
	}
	f := m.flows[stateHash]
	if f.Status != oauth.FlowExchanging || f.Resumed || f.Lease.After(m.now()) {
		return oauth.Flow{}, oauth.ErrConflict
	}
	f.Resumed, f.Lease = true, m.now().Add(lease)
	return *f, nil
}

func (m *memoryStore) Interrupted(context.Context, int) ([]oauth.Flow, error) {
	done, err := m.enter("Interrupted")
	defer done()
	if err != nil {
		return nil, err
	}
	var out []oauth.Flow
	for _, f := range m.flows {
		if f.Status == oauth.FlowExchanging && f.Lease.Before(m.now()) {
			out = append(out, *f)
		}
	}
	return out, nil
}

func (m *memoryStore) DueDevices(_ context.Context, limit int, lease time.Duration) (out []oauth.Flow, err error) {
	done, err := m.enter("DueDevices")
	defer done()
	for _, f := range m.flows {
		if f.Status == oauth.FlowLive && len(f.Device) > 0 && len(out) < limit && !m.due[f.StateHash].After(m.now()) {
			m.due[f.StateHash] = m.now().Add(lease)
			out = append(out, *f)
		}
	}
	return out, err
}

func (m *memoryStore) DevicePolled(_ context.Context, stateHash string, pace time.Duration) error {
	done, err := m.enter("DevicePolled")
	defer done()
	m.flows[stateHash].Pace, m.due[stateHash] = pace, m.now().Add(pace)
	return err
}

func (m *memoryStore) EndDevice(_ context.Context, stateHash, reason string) error {
	done, err := m.enter("EndDevice")
	defer done()
	f := m.flows[stateHash]
	if f.Status != oauth.FlowLive {
		return oauth.ErrConflict
	}
	f.Status, f.Device = oauth.FlowSpent, nil
	m.audit("reopened %s", reason)
	return err
}

func (m *memoryStore) Reopen(_ context.Context, stateHash, reason string) error {
	done, err := m.enter("Reopen")
	defer done()
	if err != nil {
		return err
	}
	f := m.flows[stateHash]
	f.Status, f.Code, f.Verifier, f.Nonce, f.Device = oauth.FlowSpent, nil, nil, nil, nil
	if r := m.requests[f.Request]; r.Status == auth.StatusExchanging {
		r.Status = auth.StatusPending
		if r.Leader == "" {
			r.Leader = r.ID
		}
	}
	m.audit("reopened %s", reason)
	return nil
}

func (m *memoryStore) end(r *auth.Request, status auth.Status) {
	r.Status = status
	for _, f := range m.flows {
		if f.Request == r.ID {
			f.Status, f.Code, f.Verifier, f.Nonce, f.Device = oauth.FlowSpent, nil, nil, nil, nil
		}
	}
	m.audit("%s %s", status, r.ID)
}

func (m *memoryStore) Deny(_ context.Context, stateHash, _ string) error {
	done, err := m.enter("Deny")
	defer done()
	if err != nil {
		return err
	}
	r := m.requests[m.flows[stateHash].Request]
	if !r.Status.Open() {
		return oauth.ErrConflict
	}
	m.end(r, auth.StatusDenied)
	return nil
}

func (m *memoryStore) Commit(_ context.Context, stateHash string, g oauth.Grant) ([]auth.Request, error) {
	done, err := m.enter("Commit")
	defer done()
	if err != nil {
		return nil, err
	}
	asked := m.requests[m.flows[stateHash].Request]
	if !asked.Status.Open() {
		return nil, oauth.ErrConflict
	}
	slot := asked.Need.Slot
	if err := m.mayReplace(m.flows[stateHash], slot, g); err != nil {
		return nil, err
	}
	g = m.save(slot, g)
	var woken []auth.Request
	for _, r := range m.requests {
		if r.Status.Open() && r.Need.Slot == slot && (r == asked || auth.Covers(g.Scopes, r.Need.Scopes)) {
			m.end(r, auth.StatusGranted)
			woken = append(woken, *r)
		}
	}
	return woken, nil
}

func (m *memoryStore) save(slot auth.Slot, g oauth.Grant) oauth.Grant {
	m.versions[slot.ID()]++
	g.Version, g.Slot, g.Created, g.Updated = m.versions[slot.ID()], slot, m.now(), m.now()
	m.grants = slices.DeleteFunc(m.grants, func(o *storedGrant) bool { return o.Slot == slot })
	m.grants = append(m.grants, &storedGrant{Grant: g})
	return g
}

func (m *memoryStore) Keep(_ context.Context, g oauth.Grant) (oauth.Grant, error) {
	done, err := m.enter("Keep")
	defer done()
	if err != nil {
		return oauth.Grant{}, err
	}
	m.audit("granted client credentials")
	return m.aged(m.save(g.Slot, g)), nil
}

func (m *memoryStore) Grants(_ context.Context, q oauth.GrantQuery) ([]oauth.Grant, error) {
	done, err := m.enter("Grants")
	defer done()
	if err != nil {
		return nil, err
	}
	var out []oauth.Grant
	for _, g := range slices.Backward(m.grants) {
		s := g.Slot
		if s.Owner == q.Owner && s.Domain == q.Domain && s.Resource == q.Resource && (q.Client == "" || s.Client == q.Client) && (q.Issuer == "" || q.Issuer == s.Issuer) {
			out = append(out, m.aged(g.Grant))
		}
	}
	return out, nil
}

func (m *memoryStore) aged(g oauth.Grant) oauth.Grant {
	g.Age = m.now().Sub(g.Updated)
	return g
}

func (m *memoryStore) grant(owner agent.Owner, id string) *storedGrant {
	for _, g := range m.grants {
		if g.ID == id && g.Slot.Owner == owner {
			return g
		}
	}
	return nil
}

func (m *memoryStore) Lease(_ context.Context, owner agent.Owner, id string, version int64, lease time.Duration) (oauth.Grant, bool, error) {
	done, err := m.enter("Lease")
	defer done()
	if err != nil {
		return oauth.Grant{}, false, err
	}
	m.leases++
	g := m.grant(owner, id)
	if g == nil {
		return oauth.Grant{}, false, oauth.ErrNotFound
	}
	ok := g.Version == version && g.lease.Before(m.now())
	if ok {
		g.lease = m.now().Add(lease)
	}
	return m.aged(g.Grant), ok, nil
}

func (m *memoryStore) SaveRefresh(_ context.Context, version int64, g oauth.Grant) (bool, error) {
	done, err := m.enter("SaveRefresh")
	defer done()
	if err != nil {
		return false, err
	}
	old := m.grant(g.Slot.Owner, g.ID)
	if old == nil || old.Version != version {
		return false, nil
	}
	g.Version, g.Updated = version+1, m.now()
	m.versions[g.Slot.ID()] = g.Version
	*old = storedGrant{Grant: g}
	m.audit("refreshed")
	return true, nil
}

func (m *memoryStore) Release(_ context.Context, owner agent.Owner, id string, version int64) error {
	done, err := m.enter("Release")
	defer done()
	if err != nil {
		return err
	}
	if g := m.grant(owner, id); g != nil && g.Version == version {
		g.lease = time.Time{}
	}
	return nil
}

func (m *memoryStore) Drop(_ context.Context, owner agent.Owner, id string, version int64, reason string) error {
	done, err := m.enter("Drop")
	defer done()
	if err != nil {
		return err
	}
	m.grants = slices.DeleteFunc(m.grants, func(g *storedGrant) bool { return g.ID == id && g.Slot.Owner == owner && g.Version == version })
	m.audit("dropped %s", reason)
	return nil
}

func (m *memoryStore) Used(_ context.Context, _ oauth.Grant, use oauth.Use) error {
	done, err := m.enter("Used")
	defer done()
	if err != nil {
		return err
	}
	m.uses = append(m.uses, use)
	return nil
}

func (m *memoryStore) Registration(_ context.Context, issuer, redirectURI string) (oauth.Registration, error) {
	done, err := m.enter("Registration")
	defer done()
	if err != nil {
		return oauth.Registration{}, err
	}
	r, ok := m.regs[issuer+" "+redirectURI]
	if !ok {
		return r, oauth.ErrNotFound
	}
	return r, nil
}

func (m *memoryStore) Register(_ context.Context, r oauth.Registration) (oauth.Registration, error) {
	done, err := m.enter("Register")
	defer done()
	if err != nil {
		return oauth.Registration{}, err
	}
	key := r.Issuer + " " + r.RedirectURI
	if old, ok := m.regs[key]; ok {
		return old, nil
	}
	m.regs[key] = r
	return r, nil
}

func (m *memoryStore) Unregister(_ context.Context, issuer, redirectURI, clientID string) error {
	done, err := m.enter("Unregister")
	defer done()
	if err != nil {
		return err
	}
	key := issuer + " " + redirectURI
	if m.regs[key].ClientID == clientID {
		delete(m.regs, key)
	}
	return nil
}

func (m *memoryStore) Callbacks(_ context.Context, limit int) ([]string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.callbacks[:min(limit, len(m.callbacks))], nil
}

func (m *memoryStore) Callback(context.Context, string) (string, error) { return "", oauth.ErrNotFound }
