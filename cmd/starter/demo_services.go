package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tarry/internal/demo"
)

// servicesOptions are the flags of demo-services.
type servicesOptions struct {
	providerAddr, providerURL, mcpAddr, mcpURL string
	tls, client, secretFile                    string
	tokenFile, audience                        string
	redirects                                  []string
}

func (a *app) demoServicesCommand() *cobra.Command {
	var o servicesOptions
	cmd := &cobra.Command{
		Use:   "demo-services",
		Short: "Serve the demo's login provider and MCP server, to try Tarry by hand",
		Long: `Serves the other side of the demo until it is stopped: a login provider, at which alice (password alice-password) and bob
(bob-password) sign in, and an MCP server with the tools of a release planner, which asks for that provider's tokens. Both
are for trying out: the passwords are known, and everything is kept in memory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demoServices(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.providerAddr, "provider-addr", "127.0.0.1:8090", "`address` that the login provider listens on")
	flags.StringVar(&o.providerURL, "provider-url", "", "`URL` at which browsers and Tarry reach the login provider, its issuer (default http://ADDRESS, or https)")
	flags.StringVar(&o.mcpAddr, "mcp-addr", "127.0.0.1:8091", "`address` that the MCP server listens on")
	flags.StringVar(&o.mcpURL, "mcp-url", "", "`URL` at which Tarry reaches the MCP server, without /mcp (default http://ADDRESS, or https)")
	flags.StringVar(&o.tls, "tls", "", "`folder` of cert.pem and key.pem, which demo-certificates makes: both serve https")
	flags.StringVar(&o.client, "client", "", "`id` of a client that is registered beforehand, for people to sign in to Tarry with")
	flags.StringVar(&o.secretFile, "client-secret-file", "", "`file` with that client's secret; none makes it a public client")
	flags.StringArrayVar(&o.redirects, "redirect-uri", nil, "exact redirect `URI` of that client; may be repeated")
	flags.StringVar(&o.tokenFile, "token-file", "", "`file` to write alice's token for Tarry's API to, for TARRY_TOKEN_FILE; it is good for a week")
	flags.StringVar(&o.audience, "token-audience", "tarry-api", "audience of that token, one of the server's TARRY_JWT_AUDIENCE")
	return cmd
}

func (a *app) demoServices(ctx context.Context, o servicesOptions) error {
	known, err := o.clients()
	if err != nil {
		return err
	}
	provider, err := listenOn(ctx, "provider", o.providerAddr, o.providerURL, o.tls)
	if err != nil {
		return err
	}
	defer provider.Close()
	tools, err := listenOn(ctx, "mcp", o.mcpAddr, o.mcpURL, o.tls)
	if err != nil {
		return err
	}
	defer tools.Close()

	id, err := demo.NewProvider(demo.ProviderConfig{URL: provider.url, Clients: known, Faults: demo.Faults{OIDCMetadata: true}})
	if err != nil {
		return failed("make provider: %w", err)
	}
	if err := o.writeToken(id); err != nil {
		return err
	}
	mcp, err := demo.NewMCPServer(demo.MCPConfig{Provider: id, URL: tools.url})
	if err != nil {
		return failed("make MCP server: %w", err)
	}
	broken := make(chan error, 2)
	go func() { broken <- provider.serve(id) }()
	go func() { broken <- tools.serve(mcp) }()
	if a.json {
		err = a.printJSON(map[string]string{"issuer": id.Issuer(), "mcp": mcp.URL()})
	} else {
		err = a.print("login provider  %s (alice, alice-password; bob, bob-password)\nMCP server      %s\nready %s", id.Issuer(), mcp.URL(), id.URL())
	}
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-broken:
		return failed("%w", err)
	}
}

// clients is the one that people sign in with, if it is named.
func (o servicesOptions) clients() ([]demo.Client, error) {
	switch {
	case o.client == "" && (o.secretFile != "" || len(o.redirects) > 0):
		return nil, unusable("--client-secret-file and --redirect-uri are for a client: name it with --client")
	case o.client == "":
		return nil, nil
	case len(o.redirects) == 0:
		return nil, unusable("--client %s has no redirect URI: give --redirect-uri", o.client)
	}
	c := demo.Client{ID: o.client, Name: "Tarry", RedirectURIs: o.redirects}
	if o.secretFile != "" {
		secret, err := os.ReadFile(o.secretFile)
		if err != nil {
			return nil, unusable("--client-secret-file: %w", err)
		}
		if c.Secret = strings.TrimRight(string(secret), "\r\n"); c.Secret == "" {
			return nil, unusable("--client-secret-file: %s is empty", o.secretFile)
		}
	}
	return []demo.Client{c}, nil
}

// writeToken writes the file at once: a reader sees all of it or what was there before.
func (o servicesOptions) writeToken(id *demo.Provider) error {
	if o.tokenFile == "" {
		return nil
	}
	const life = 7 * 24 * time.Hour
	token, err := id.APIToken("alice", o.audience, life)
	if err == nil {
		err = os.WriteFile(o.tokenFile+".new", []byte(token+"\n"), 0o600)
	}
	if err == nil {
		err = os.Rename(o.tokenFile+".new", o.tokenFile)
	}
	if err != nil {
		return failed("--token-file: %w", err)
	}
	return nil
}

// place is a listener with the URL that it is known by.
type place struct {
	net.Listener
	url string
}

func listenOn(ctx context.Context, flag, addr, known, certificates string) (*place, error) {
	if known != "" {
		u, err := url.Parse(known)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
			return nil, unusable("--%s-url %q is not a URL without a path, such as http://127.0.0.1:8090", flag, known)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, unusable("--%s-addr: %w", flag, err)
	}
	scheme := "http"
	if certificates != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(certificates, certFile), filepath.Join(certificates, keyFile))
		if err != nil {
			return nil, errors.Join(unusable("--tls: %w", err), l.Close())
		}
		scheme, l = "https", tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}})
	}
	if known == "" {
		known = scheme + "://" + l.Addr().String()
	}
	return &place{l, strings.TrimSuffix(known, "/")}, nil
}

// serve ends when the listener is closed.
func (p *place) serve(h http.Handler) error {
	const headers = 10 * time.Second
	err := (&http.Server{Handler: h, ReadHeaderTimeout: headers}).Serve(p.Listener)
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", p.url, err)
}
