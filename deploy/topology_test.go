package deploy_test

import (
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	upstreams  = regexp.MustCompile(`(?m)^\s*reverse_proxy (.*) \{$`)
	healthURI  = regexp.MustCompile(`(?m)^\s*health_uri (\S+)$`)
	caddyNames = regexp.MustCompile(`\{\$([A-Z_]+)(?::[^}]*)?\}`)
)

// proxy checks that the proxy leads to the servers, and that they believe nobody else.
func (c *checker) proxy() {
	text, proxy := c.files["deploy/Caddyfile"], c.compose.Services["proxy"]
	var servers []string
	for name, s := range c.compose.Services {
		if s.Build != nil && s.Build.Target == "server" {
			servers = append(servers, name)
			if want := proxy.Networks["front"].Address + "/32"; s.Environment["TARRY_TRUSTED_PROXIES"] != want {
				c.bad("%s: trusts %s, and the proxy is %s", name, s.Environment["TARRY_TRUSTED_PROXIES"], want)
			}
		}
	}
	m := upstreams.FindStringSubmatch(text)
	if m == nil {
		c.bad("Caddyfile: no upstreams")
		return
	}
	var led []string
	for upstream := range strings.FieldsSeq(m[1]) {
		host, port, _ := strings.Cut(upstream, ":")
		led = append(led, host)
		c.reaches("proxy", host, port, strings.Join(c.listens(host, c.compose.Services[host]), ""), "the Caddyfile")
	}
	slices.Sort(servers)
	slices.Sort(led)
	if !slices.Equal(servers, led) {
		c.bad("Caddyfile: leads to %v, and the servers are %v", led, servers)
	}
	if m := healthURI.FindStringSubmatch(text); m == nil || m[1] != "/readyz" {
		c.bad("Caddyfile: servers are asked at another route than /readyz")
	}
	if site, err := url.Parse(c.env["TARRY_SITE"]); err == nil && site.Host != "" && site.String() != c.env["TARRY_PUBLIC_URL"] {
		c.bad("TARRY_SITE %s is not TARRY_PUBLIC_URL %s", site, c.env["TARRY_PUBLIC_URL"])
	} else if site.Host == "" && "https://"+site.String() != c.env["TARRY_PUBLIC_URL"] {
		c.bad("TARRY_SITE %s is not the host of TARRY_PUBLIC_URL %s", site, c.env["TARRY_PUBLIC_URL"])
	}
	c.demo()
}

// demo checks that the demo's values lead to its services.
func (c *checker) demo() {
	if c.env["COMPOSE_PROFILES"] == "" {
		return
	}
	s := c.compose.Services["demo-services"]
	if got := flag(s.Command, "provider-url"); got != c.env["TARRY_OIDC_ISSUER"] {
		c.bad("TARRY_OIDC_ISSUER is %s, and the demo's provider is %s", c.env["TARRY_OIDC_ISSUER"], got)
	}
	if got := flag(s.Command, "client"); got != c.env["TARRY_OIDC_CLIENT_ID"] {
		c.bad("TARRY_OIDC_CLIENT_ID is %s, and the demo's client is %s", c.env["TARRY_OIDC_CLIENT_ID"], got)
	}
	if got := flag(s.Command, "redirect-uri"); !strings.HasPrefix(got, c.env["TARRY_PUBLIC_URL"]+"/") {
		c.bad("the demo's redirect URI %s is not below TARRY_PUBLIC_URL %s", got, c.env["TARRY_PUBLIC_URL"])
	}
	if want := "MCP_URL=" + flag(s.Command, "mcp-url") + "/mcp"; !strings.HasSuffix(c.env["TARRY_VARS"], want) {
		c.bad("TARRY_VARS does not end in %s", want)
	}
	if want := s.Networks["front"].Address + "/32"; c.env["TARRY_ALLOW_CIDRS"] != want {
		c.bad("TARRY_ALLOW_CIDRS is %s, and the demo's services are at %s", c.env["TARRY_ALLOW_CIDRS"], want)
	}
	names := c.compose.Services["demo-certificates"].Command
	for _, alias := range s.Networks["front"].Aliases {
		if !slices.Contains(names, alias) {
			c.bad("there is no certificate for %s", alias)
		}
	}
}

// database checks that postgres/init.sh makes a database for its owner.
func (c *checker) database(name, database, owner string) {
	if !strings.Contains(c.files["deploy/postgres/init.sh"], fmt.Sprintf("CREATE DATABASE %s OWNER %s ", database, owner)) {
		c.bad("%s: deploy/postgres/init.sh makes no database %q of %q", name, database, owner)
	}
}

var scriptDatabase = regexp.MustCompile(`database=(\w+)`)

func (c *checker) databases() {
	owner := c.compose.Services["temporal-schema"].Environment["SQL_USER"]
	if user := c.compose.Services["temporal"].Environment["POSTGRES_USER"]; user != owner {
		c.bad("temporal: is user %q, and its tables are of %q", user, owner)
	}
	for _, m := range scriptDatabase.FindAllStringSubmatch(c.files["deploy/temporal/schema.sh"], -1) {
		c.database("temporal-schema", m[1], owner)
	}
	if !strings.Contains(c.files["deploy/temporal/ui.yaml"], "\ntemporalGrpcAddress: temporal:7233\n") {
		c.bad("temporal-ui: does not ask temporal:7233")
	}
}

// dockerfile checks what is built, copied and named.
func (c *checker) dockerfile() {
	text := c.files["Dockerfile"]
	stages, args := parseDockerfile(text)
	c.args = args
	for _, s := range stages {
		for name := range args {
			s.from = strings.ReplaceAll(s.from, "${"+name+"}", args[name])
		}
		if c.stages[s.from] == nil && s.from != "scratch" && !regexp.MustCompile(`^[a-z]+:\d[\w.-]+$`).MatchString(s.from) {
			c.bad("Dockerfile: stage %s is from %q, which is neither a stage nor an image with a version", s.name, s.from)
		}
		for _, f := range s.copies {
			c.copied(s, f)
		}
		for _, command := range []string{s.entrypoint, s.healthCommand} {
			if command != "" && !slices.ContainsFunc(s.copies, func(f copied) bool { return f.target == command }) {
				c.bad("Dockerfile: stage %s has no %s", s.name, command)
			}
		}
		for _, port := range s.ports {
			listening := slices.ContainsFunc(slices.Collect(maps.Values(c.compose.Services)), func(of service) bool {
				return of.Build != nil && of.Build.Target == s.name && slices.Contains(c.listens(s.name, of), port)
			})
			if !listening {
				c.bad("Dockerfile: stage %s exposes port %s, and nothing listens on it", s.name, port)
			}
		}
		c.stages[s.name] = s
	}
	build := c.stages["build"]
	if build == nil || build.env["CGO_ENABLED"] != "0" || !strings.Contains(build.env["GOFLAGS"], "-trimpath") {
		c.bad("Dockerfile: programs are not built with CGO_ENABLED=0 and -trimpath")
	}
	if need := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(c.files["go.mod"]); !newEnough(args["GO_VERSION"], need[1]) {
		c.bad("Dockerfile: Go %s is older than go.mod's %s", args["GO_VERSION"], need[1])
	}
	for _, m := range caddyNames.FindAllStringSubmatch(c.files["deploy/Caddyfile"], -1) {
		c.caddy = append(c.caddy, m[1])
	}
}

// newEnough compares versions of three numbers below 1,000.
func newEnough(have, need string) bool {
	number := func(text string) (n int) {
		var a, b, d int
		if _, err := fmt.Sscanf(text, "%d.%d.%d", &a, &b, &d); err != nil {
			return 0
		}
		return (a*1000+b)*1000 + d
	}
	return number(have) >= number(need) && number(have) > 0
}

// copied checks that what is copied is there: in another stage or in the context.
func (c *checker) copied(s *stage, f copied) {
	if f.stage == "" {
		if _, err := os.Stat(filepath.Join(root, f.source)); err != nil {
			c.bad("Dockerfile: stage %s copies %s, which is not there", s.name, f.source)
		} else if f.source != "." && !admitted(c.files[".dockerignore"], f.source) {
			c.bad("Dockerfile: stage %s copies %s, which .dockerignore leaves out", s.name, f.source)
		}
		return
	}
	from := c.stages[f.stage]
	if from == nil {
		c.bad("Dockerfile: stage %s copies from %q, which is no stage before it", s.name, f.stage)
		return
	}
	if program, ok := strings.CutPrefix(f.source, "/out/"); ok {
		if !regexp.MustCompile(`\./cmd/` + program + `\b`).MatchString(from.text) {
			c.bad("Dockerfile: stage %s copies %s, which is not built", s.name, f.source)
		}
		if _, err := os.Stat(filepath.Join(root, "cmd", program)); err != nil {
			c.bad("Dockerfile: there is no program %s", program)
		}
		return
	}
	if f.source != "/etc/ssl/certs/ca-certificates.crt" && !regexp.MustCompile(regexp.QuoteMeta(f.source)+`(\s|$)`).MatchString(from.text) {
		c.bad("Dockerfile: stage %s copies %s, which stage %s does not make", s.name, f.source, f.stage)
	}
}

// admitted says whether a .dockerignore of the forms *, !path, !*.go and **/name lets a file into the build.
func admitted(ignore, path string) bool {
	in := true
	for line := range strings.Lines(ignore) {
		line = strings.TrimSpace(line)
		pattern, back := strings.CutPrefix(line, "!")
		var hit bool
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case pattern == "*":
			hit = true
		case strings.HasPrefix(pattern, "**/"):
			for part := range strings.SplitSeq(path, "/") {
				matched, err := filepath.Match(pattern[3:], part)
				hit = hit || err == nil && matched
			}
		case strings.HasPrefix(pattern, "*"):
			matched, err := filepath.Match(pattern, path)
			hit = err == nil && matched
		default:
			hit = path == pattern || strings.HasPrefix(path, pattern+"/")
		}
		if hit {
			in = back
		}
	}
	return in
}
