package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"time"

	"tarry/engine"
	"tarry/internal/wiring"
	"tarry/notify"
	"tarry/server/signin"
	"tarry/server/web"
	"tarry/server/webui"
)

// Config of a [Server]. Every field is required unless it says otherwise.
type Config struct {
	Parts  *wiring.Parts
	Engine *engine.Engine
	// PublicURL is where browsers reach the server.
	PublicURL *url.URL
	SignIn    signin.Mode
	// Proxies are trusted to say in X-Forwarded-For for whom they ask.
	Proxies signin.Peers
	// Origins are further origins whose pages may call the API; usually none. SignIn needs them as well.
	Origins web.Origins
	// ReturnTo are the exact addresses that the connect page may send browsers back to; usually none. That of WebUI is among
	// them by itself.
	ReturnTo []string
	// APIPrefix is "/api" for clients of adk-go, which write it before the paths of the API: both work then. Empty: none.
	APIPrefix string
	// WebUI is a build of the ADK web UI, served at /dev-ui/; nil leaves it out.
	WebUI   *webui.Build
	Version string
	Log     *slog.Logger
	// Metrics is served at /metrics behind the sign-in; nil leaves it out.
	Metrics http.Handler
	// Webhooks delivers webhooks; nil means there are none.
	Webhooks *notify.Sender
	// Rates bound what one caller may send to this process; nil: no bound.
	Rates web.Rates
	// Retention is how long rows stay that nobody needs any more; 0: for ever.
	Retention time.Duration
	// Poll is how often the outbox and interrupted logins are looked at without being told; 0 means half a second.
	Poll time.Duration
}

const (
	apiPrefix   = "/api"
	defaultPoll = 500 * time.Millisecond
	tellEvery   = 10 * time.Second
	purgeEvery  = time.Hour
	// patience is how long clients that hang are waited for.
	patience = 30 * time.Second
)

func (c *Config) check() error {
	if c.Parts == nil || c.Engine == nil || c.PublicURL == nil || c.SignIn == nil || c.Log == nil {
		return errors.New("server: a required field of Config is missing")
	}
	if c.APIPrefix != "" && c.APIPrefix != apiPrefix {
		return fmt.Errorf("server: the prefix of the API is %q; it can be %s, which clients of adk-go write, or empty", c.APIPrefix, apiPrefix)
	}
	c.ReturnTo = append(slices.Clone(c.ReturnTo), c.Origins.WebUIs()...)
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	return nil
}
