package tarrytest

import (
	"tarry/agent"
	"tarry/models"
)

// Option changes how [Start] runs an agent.
type Option func(*options)

type options struct {
	app         string
	agentsDir   string
	vars        map[string]string
	model       models.Model
	toolsets    Toolsets
	credentials *Credentials
	owner       agent.Owner
	state       map[string]any
	short       bool
}

// WithModel answers for every model that the agents name.
func WithModel(m models.Model) Option { return func(o *options) { o.model = m } }

// WithToolset stands in for the MCP toolset of that name.
func WithToolset(name string, s *Toolset) Option { return func(o *options) { o.toolsets[name] = s } }

// WithCredentials gives the person logins from the start.
func WithCredentials(c *Credentials) Option { return func(o *options) { o.credentials = c } }

// WithAgents adds the agent folders in dir, as a worker does; vars replace ${var:NAME}.
func WithAgents(dir string, vars map[string]string) Option {
	return func(o *options) { o.agentsDir, o.vars = dir, vars }
}

// WithApp chooses the app where there are several.
func WithApp(name string) Option { return func(o *options) { o.app = name } }

// WithState is the state that the session is created with.
func WithState(state map[string]any) Option { return func(o *options) { o.state = state } }

// WithShortRuns lets every run end where it can, which is at each turn boundary and wherever it waits, and go on as another. It
// shows that an agent does the same wherever its history becomes too long.
func WithShortRuns() Option { return func(o *options) { o.short = true } }
