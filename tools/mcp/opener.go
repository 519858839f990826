package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"tarry/agent"
	"tarry/auth"
	"tarry/tools"
)

// Opener opens MCP toolsets and keeps their connections. Safe for concurrent use.
type Opener struct {
	cfg Config
	// life ends with Close, and with it every attempt.
	life  context.Context
	end   context.CancelFunc
	calls sync.WaitGroup
	work  sync.WaitGroup // sessions that are being closed

	mu     sync.Mutex
	closed bool
	conns  map[key]*conn
}

var _ tools.Opener = (*Opener)(nil)

// key tells connections apart. Without the owner in it, one user's session would serve another.
type key struct {
	owner  agent.Owner
	server string // the whole definition, as JSON; it holds references to secrets only
}

// New returns an opener without connections.
func New(cfg Config) (*Opener, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	o := &Opener{cfg: cfg, conns: map[key]*conn{}}
	o.life, o.end = context.WithCancel(context.Background())
	return o, nil
}

// Open returns the toolset of a definition for one owner and one attempt's broker; a nil broker has no tokens. It does not
// connect.
func (o *Opener) Open(_ context.Context, def *agent.MCPToolset, owner agent.Owner, broker auth.Broker) (tools.Toolset, error) {
	if err := owner.Validate(); err != nil {
		return nil, fmt.Errorf("open toolset %s: %w", def.Name, err)
	}
	server, err := json.Marshal(def)
	if err != nil {
		return nil, fmt.Errorf("open toolset %s: %w", def.Name, err)
	}
	return &toolset{opener: o, def: def, key: key{owner: owner, server: string(server)}, broker: broker}, nil
}

// Close cancels running calls, tells their servers, ends all sessions and waits until that is done. Later calls fail with
// [ErrClosed].
func (o *Opener) Close() error {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.end()
	o.calls.Wait()
	o.mu.Lock()
	for k, c := range o.conns {
		delete(o.conns, k)
		c.unidle()
		o.work.Go(c.close)
	}
	o.mu.Unlock()
	o.work.Wait()
	return nil
}

// enter finds or makes the connection of a key and keeps it from becoming idle until leave.
func (o *Opener) enter(k key, def *agent.MCPToolset) (*conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, fmt.Errorf("%w: %w", ErrClosed, tools.ErrNotExecuted)
	}
	c := o.conns[k]
	if c == nil {
		c = newConn(o, k, def)
		o.conns[k] = c
	}
	c.users++
	c.unidle()
	o.calls.Add(1)
	return c, nil
}

func (o *Opener) leave(c *conn) {
	defer o.calls.Done()
	o.mu.Lock()
	defer o.mu.Unlock()
	c.users--
	switch {
	case c.users > 0 || o.closed:
	case !c.connected():
		delete(o.conns, c.key)
	default:
		c.idle = time.AfterFunc(o.cfg.IdleTimeout, func() { o.evict(c) })
	}
}

func (o *Opener) evict(c *conn) {
	o.mu.Lock()
	if o.closed || c.users > 0 || o.conns[c.key] != c {
		o.mu.Unlock()
		return
	}
	delete(o.conns, c.key)
	o.work.Add(1)
	o.mu.Unlock()
	defer o.work.Done()
	c.close()
}
