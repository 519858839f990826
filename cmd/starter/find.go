package main

import (
	"context"
	"strings"
)

// find reaches for the server, and for a session there; see [client.find].
func (a *app) find(ctx context.Context, name, session string) (*client, *statusInfo, error) {
	c, err := a.client()
	if err != nil {
		return nil, nil, err
	}
	st, err := c.find(ctx, name, session)
	return c, st, err
}

// find returns the run of a session id, which is looked up over the user's apps unless the app is named.
func (c *client) find(ctx context.Context, app, session string) (*statusInfo, error) {
	if app != "" {
		return c.status(ctx, app, session)
	}
	runs, err := c.runs(ctx, "", true)
	if err != nil {
		return nil, err
	}
	var apps []string
	for _, r := range runs {
		if r.Session == session {
			apps = append(apps, r.App)
		}
	}
	switch len(apps) {
	case 0:
		return nil, unusable("user %s has no session %q: `starter list --all` shows those there are", c.user, session)
	case 1:
		return c.status(ctx, apps[0], session)
	default:
		return nil, unusable("session %q is one of several apps: choose with --app %s", session, strings.Join(apps, " or --app "))
	}
}
