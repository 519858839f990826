package main

import (
	"fmt"
	"net"
	"net/url"
	"strconv"

	"tarry/internal/process"
)

// address is where the server listens.
func address(e process.Environment) string { return e.Get("TARRY_HTTP_ADDR", "127.0.0.1:8080") }

// onLoopback refuses what sign-in mode none cannot protect.
func onLoopback(addr string, public *url.URL) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("TARRY_HTTP_ADDR: %q is not HOST:PORT", addr)
	}
	if !isLoopback(host) {
		return fmt.Errorf("TARRY_HTTP_ADDR: %q is not loopback, and without sign-in anybody who reaches it would be the operator; use 127.0.0.1, or set TARRY_SIGNIN to oidc, jwt or proxy", addr)
	}
	if !isLoopback(public.Hostname()) {
		return fmt.Errorf("TARRY_PUBLIC_URL: %q is not on loopback, which is all that a server without sign-in serves; set TARRY_SIGNIN to oidc, jwt or proxy", public)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func port(public *url.URL) int {
	n, err := strconv.Atoi(public.Port())
	if err == nil {
		return n
	}
	if public.Scheme == "https" {
		return 443
	}
	return 80
}
