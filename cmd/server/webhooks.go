package main

import (
	"context"
	"fmt"

	"tarry"
	"tarry/internal/process"
	"tarry/internal/safehttp"
	"tarry/internal/wiring"
	"tarry/notify"
)

// webhooks makes the sender of the endpoints that TARRY_WEBHOOKS lists; nil without it.
func webhooks(ctx context.Context, e process.Environment, c tarry.Config, parts *wiring.Parts) (*notify.Sender, error) {
	path := e.Get("TARRY_WEBHOOKS", "")
	if path == "" {
		return nil, nil //nolint:nilnil // there are none
	}
	endpoints, err := notify.Load(path)
	if err != nil {
		return nil, fmt.Errorf("TARRY_WEBHOOKS: %w", err)
	}
	client := safehttp.New(safehttp.Config{AllowLoopback: c.Dev, AllowCIDRs: c.AllowCIDRs, Timeout: notify.Timeout, UserAgent: "tarry"})
	sender, err := notify.New(ctx, notify.Config{
		Store: parts.Store, Endpoints: endpoints, HTTP: client.HTTP(), Secrets: wiring.Secrets(c.SecretsDir, e.Lookup), PublicURL: c.PublicURL.String(), Log: e.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("TARRY_WEBHOOKS: %w", err)
	}
	return sender, nil
}
