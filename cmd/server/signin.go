package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"tarry/auth"
	"tarry/internal/process"
	"tarry/server/signin"
	"tarry/server/web"
)

// signInVariables are those of sign-in, with what they mean.
func signInVariables() map[string]string {
	return map[string]string{
		"TARRY_SIGNIN":                  "how callers sign in (default none): none, which serves loopback only, or oidc, jwt, proxy, separated by commas",
		"TARRY_OIDC_ISSUER":             "oidc: issuer of the OpenID provider",
		"TARRY_OIDC_CLIENT_ID":          "oidc: this server's client id at the provider",
		"TARRY_OIDC_CLIENT_SECRET":      "oidc: its secret; unset for a public client",
		"TARRY_OIDC_CLIENT_SECRET_FILE": "oidc: file that holds the secret",
		"TARRY_OIDC_SCOPES":             "oidc: scopes to ask for (default openid,profile,email)",
		"TARRY_OIDC_ALLOW":              "oidc: who of the provider's people may sign in: @example.com, ann@example.com, claim=value, separated by commas, or * for all",
		"TARRY_SESSION_IDLE":            "oidc: a session ends when it is not used for so long (default 8h)",
		"TARRY_SESSION_LIFETIME":        "oidc: every session ends after so long (default 24h)",
		"TARRY_JWT_ISSUERS":             "jwt: issuers whose access tokens are taken, separated by commas",
		"TARRY_JWT_AUDIENCE":            "jwt: audiences of which a token must have one, separated by commas",
		"TARRY_JWT_ALLOW":               "jwt: whose tokens are taken, as in TARRY_OIDC_ALLOW; services need no rule (default *)",
		"TARRY_SERVICES":                "jwt: YAML file of applications that act for users of their own",
		"TARRY_PROXY_HEADER":            "proxy: header with the person's name (default X-Forwarded-User)",
		"TARRY_PROXY_ISSUER":            "proxy: name of the proxy's directory of people, part of every user id (default proxy)",
		"TARRY_TRUSTED_PROXIES":         "address ranges of the proxies in front of this server, separated by commas; their X-Forwarded-For is believed, and with proxy their header",
	}
}

// settings reads variables and collects what is wrong with them.
type settings struct {
	process.Environment

	modes []string
	errs  []error
}

func (s *settings) bad(name, format string, args ...any) {
	s.errs = append(s.errs, fmt.Errorf(name+": "+format, args...))
}

// signInSettings is what the variables say; the Config is nil for none.
func signInSettings(e process.Environment, public *url.URL, addr string) (*signin.Config, signin.Peers, error) {
	s := &settings{Environment: e, modes: split(e.Get("TARRY_SIGNIN", signin.ModeNone))}
	known := []string{signin.ModeNone, signin.ModeOIDC, signin.ModeJWT, signin.ModeProxy}
	for _, mode := range s.modes {
		if !slices.Contains(known, mode) {
			s.bad("TARRY_SIGNIN", "%q is not one of none, oidc, jwt, proxy", mode)
		}
	}
	s.unused()
	trusted := s.prefixes("TARRY_TRUSTED_PROXIES")
	if slices.Contains(s.modes, signin.ModeNone) {
		if len(s.modes) > 1 {
			s.bad("TARRY_SIGNIN", "none cannot stand beside another mode: it would let everybody in; take it out")
		}
		if err := onLoopback(addr, public); err != nil {
			s.errs = append(s.errs, err)
		}
		return nil, trusted, errors.Join(s.errs...)
	}
	if public.Scheme != "https" && !isLoopback(public.Hostname()) {
		s.bad("TARRY_PUBLIC_URL", "%q is not https: sessions and tokens would cross the network in the clear; use an https address", public)
	}
	c := &signin.Config{PublicURL: public, Log: e.Log, OIDC: s.oidc(), JWT: s.jwt(), Proxy: s.proxy(trusted), Services: s.services()}
	if c.OIDC != nil && c.JWT != nil && slices.Contains(c.JWT.Audiences, c.OIDC.ClientID) {
		s.bad("TARRY_JWT_AUDIENCE", "%q is TARRY_OIDC_CLIENT_ID as well: ID tokens, which other applications see, would be good for the API; use an audience of its own", c.OIDC.ClientID)
	}
	return c, trusted, errors.Join(s.errs...)
}

// unused refuses variables of a mode that is not chosen: whoever sets them believes that they protect something.
func (s *settings) unused() {
	for name, text := range signInVariables() {
		mode, _, found := strings.Cut(text, ":")
		if found && slices.Contains([]string{signin.ModeOIDC, signin.ModeJWT, signin.ModeProxy}, mode) && !slices.Contains(s.modes, mode) && s.Get(name, "") != "" {
			s.bad(name, "is set, but TARRY_SIGNIN is %s; add %s to TARRY_SIGNIN, or unset %s", strings.Join(s.modes, ","), mode, name)
		}
	}
}

func (s *settings) oidc() *signin.OIDC {
	if !slices.Contains(s.modes, signin.ModeOIDC) {
		return nil
	}
	o := &signin.OIDC{
		Issuer: s.issuer("TARRY_OIDC_ISSUER", s.Get("TARRY_OIDC_ISSUER", "")), ClientID: s.Get("TARRY_OIDC_CLIENT_ID", ""),
		ClientSecret: s.secret("TARRY_OIDC_CLIENT_SECRET"), Scopes: split(s.Get("TARRY_OIDC_SCOPES", "openid,profile,email")),
		Allow: s.allow("TARRY_OIDC_ALLOW"), Idle: s.duration("TARRY_SESSION_IDLE", "8h"), Lifetime: s.duration("TARRY_SESSION_LIFETIME", "24h"),
	}
	if o.ClientID == "" {
		s.bad("TARRY_OIDC_CLIENT_ID", "is missing; register this server at the provider, with the redirect URI TARRY_PUBLIC_URL%s", signin.CallbackPath)
	}
	if !slices.Contains(o.Scopes, "openid") {
		s.bad("TARRY_OIDC_SCOPES", "%q lacks openid, without which the provider does not say who signs in", strings.Join(o.Scopes, ","))
	}
	if len(o.Allow) == 0 && s.Get("TARRY_OIDC_ALLOW", "") == "" {
		s.bad("TARRY_OIDC_ALLOW", "is missing; say who may sign in, such as @example.com for checked addresses of a domain or groups=tarry for a claim; * lets in everybody who has an account at %s, which with a public provider is anybody", o.Issuer)
	}
	if o.Allow.NeedsEmail() && !slices.Contains(o.Scopes, "email") {
		s.bad("TARRY_OIDC_SCOPES", "%q lacks email, which TARRY_OIDC_ALLOW goes by", strings.Join(o.Scopes, ","))
	}
	return o
}

func (s *settings) allow(name string) signin.Allow {
	rules, err := signin.ParseAllow(split(s.Get(name, "")))
	if err != nil {
		s.bad(name, "%w", err)
	}
	return rules
}

func (s *settings) jwt() *signin.JWT {
	if !slices.Contains(s.modes, signin.ModeJWT) {
		return nil
	}
	j := &signin.JWT{Audiences: split(s.Get("TARRY_JWT_AUDIENCE", "")), Allow: s.allow("TARRY_JWT_ALLOW")}
	for _, name := range split(s.Get("TARRY_JWT_ISSUERS", "")) {
		j.Issuers = append(j.Issuers, s.issuer("TARRY_JWT_ISSUERS", name))
	}
	if len(j.Issuers) == 0 {
		s.bad("TARRY_JWT_ISSUERS", "is missing; write the iss of the tokens, such as https://login.example")
	}
	if len(j.Audiences) == 0 {
		s.bad("TARRY_JWT_AUDIENCE", "is missing; write the aud that the issuer gives tokens for this server: without it tokens for any other server would do")
	}
	return j
}

func (s *settings) proxy(trusted []netip.Prefix) *signin.Proxy {
	if !slices.Contains(s.modes, signin.ModeProxy) {
		return nil
	}
	p := &signin.Proxy{Header: s.Get("TARRY_PROXY_HEADER", "X-Forwarded-User"), Issuer: s.Get("TARRY_PROXY_ISSUER", "proxy"), Peers: trusted}
	if len(trusted) == 0 {
		s.bad("TARRY_TRUSTED_PROXIES", "is missing; write the address of the proxy that signs people in, such as 10.0.0.5/32: nobody else may send %s", p.Header)
	}
	if strings.Trim(strings.ToLower(p.Header), "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		s.bad("TARRY_PROXY_HEADER", "%q is not the name of a header such as X-Forwarded-User", p.Header)
	}
	return p
}

func (s *settings) services() (out []signin.Service) {
	file := s.Get("TARRY_SERVICES", "")
	if file == "" {
		return nil
	}
	body, err := os.ReadFile(file)
	if err != nil {
		s.bad("TARRY_SERVICES", "%q cannot be read: %w", file, err)
		return nil
	}
	var in struct {
		Services []signin.Service `yaml:"services"`
	}
	d := yaml.NewDecoder(bytes.NewReader(body))
	d.KnownFields(true)
	if err := d.Decode(&in); err != nil && !errors.Is(err, io.EOF) {
		s.bad("TARRY_SERVICES", "%q is not a list of services: %w", file, err)
		return nil
	}
	for _, one := range in.Services {
		if !slices.Contains(split(s.Get("TARRY_JWT_ISSUERS", "")), one.Issuer) {
			s.bad("TARRY_SERVICES", "%q: issuer %q of service %q is not one of TARRY_JWT_ISSUERS", file, one.Issuer, one.Name)
		}
	}
	return in.Services
}

func (s *settings) issuer(name, value string) string {
	u, err := url.Parse(value)
	switch {
	case value == "":
		s.bad(name, "is missing; write the issuer as its tokens have it, such as https://login.example")
	case err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		s.bad(name, "%q is not an https address without query (http on loopback only)", value)
	}
	return value
}

// secret reads a variable or, with _FILE behind its name, a file. Errors name neither value.
func (s *settings) secret(name string) auth.Secret {
	value, file := s.Get(name, ""), s.Get(name+"_FILE", "")
	switch {
	case value != "" && file != "":
		s.bad(name, "is set, and %s_FILE too; unset one of them", name)
	case file != "":
		body, err := os.ReadFile(file)
		if err != nil {
			s.bad(name+"_FILE", "%q cannot be read: %w", file, err)
		}
		value = strings.TrimRight(string(body), "\r\n")
		if err == nil && value == "" {
			s.bad(name+"_FILE", "%q is empty; write the client secret into it", file)
		}
	}
	return auth.NewSecret(value)
}

func (s *settings) duration(name, fallback string) time.Duration {
	text := s.Get(name, fallback)
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute {
		s.bad(name, "%q is not a duration of at least a minute, such as %s", text, fallback)
	}
	return d
}

func (s *settings) prefixes(name string) (out []netip.Prefix) {
	for _, text := range split(s.Get(name, "")) {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			s.bad(name, "%q is not a range such as 10.0.0.0/8 or 10.0.0.5/32", text)
			continue
		}
		if p.Bits() == 0 {
			s.bad(name, "%q is every address there is: anybody could say who they are; list the proxies", text)
		}
		out = append(out, p)
	}
	return out
}

func split(list string) (out []string) {
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// noSignIn is the mode of a server that signs nobody in.
func noSignIn(public *url.URL, origins web.Origins, log *slog.Logger) signin.Mode {
	return signin.None{Port: port(public), Origins: origins, Log: log}
}
