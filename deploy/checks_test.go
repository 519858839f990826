package deploy_test

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// knowledge is what the programs and the images of others know.
type knowledge struct {
	programs  programs
	variables map[string][]string // of a program, or of a service with somebody else's image
	// temporalVersion is that of the server which Tarry is tested with.
	temporalVersion string
}

// checker collects what is wrong with the files.
type checker struct {
	t        *testing.T
	files    files
	env      map[string]string
	known    knowledge
	compose  *composeFile
	stages   map[string]*stage
	args     map[string]string
	caddy    []string // variables that the Caddyfile reads
	problems []string
}

func (c *checker) bad(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// check returns everything that is wrong with the files, with the variables of an env file.
func check(t *testing.T, all files, envFile string, known knowledge) []string {
	t.Helper()
	c := &checker{t: t, files: all, env: parseEnv(all[envFile]), known: known, stages: map[string]*stage{}}
	var err error
	if c.compose, err = parseCompose(all["docker-compose.yml"], c.env); err != nil {
		return []string{err.Error()}
	}
	c.dockerfile()
	c.envFile(envFile)
	for _, name := range slices.Sorted(maps.Keys(c.compose.Services)) {
		s := c.compose.Services[name]
		c.image(name, s)
		c.variables(name, s)
		c.commands(name, s)
		c.mounts(name, s)
		c.secrets(name, s)
		c.network(name, s)
		c.ports(name, s)
		c.hardened(name, s)
		c.dependencies(name, s)
	}
	c.topLevel()
	c.proxy()
	c.databases()
	return c.problems
}

// own is the stage of the project's own images, else nil.
func (c *checker) own(s service) *stage {
	if s.Build == nil {
		return nil
	}
	return c.stages[s.Build.Target]
}

// program is what a service runs: a path in its image.
func (c *checker) program(s service) string {
	if own := c.own(s); own != nil && len(s.Entrypoint) == 0 {
		return own.entrypoint
	}
	if len(s.Entrypoint) > 0 {
		return s.Entrypoint[0]
	}
	return ""
}

func (c *checker) image(name string, s service) {
	switch {
	case s.Build != nil:
		if c.stages[s.Build.Target] == nil {
			c.bad("%s: the Dockerfile has no stage %q", name, s.Build.Target)
		}
		if _, err := os.Stat(filepath.Join(root, s.Build.Context, "Dockerfile")); err != nil {
			c.bad("%s: there is no Dockerfile in %q", name, s.Build.Context)
		}
	case !strings.Contains(s.Image, ":") || strings.HasSuffix(s.Image, ":latest"):
		c.bad("%s: image %q has no version", name, s.Image)
	}
	repository, version, _ := strings.Cut(s.Image, ":")
	if (repository == "temporalio/server" || repository == "temporalio/admin-tools") && version != c.known.temporalVersion {
		c.bad("%s: image %q is not of version %s, which is tested", name, s.Image, c.known.temporalVersion)
	}
}

func (c *checker) variables(name string, s service) {
	program := filepath.Base(c.program(s))
	if s.Build == nil {
		program = name
	}
	known := c.known.variables[program]
	switch {
	case program == "caddy":
		known = c.caddy
	case program == "starter" && len(s.Command) > 0 && s.Command[0] == "vault": // which has the configuration of a worker
		known = c.known.variables["worker"]
	}
	for _, variable := range slices.Sorted(maps.Keys(s.Environment)) {
		if !slices.Contains(known, variable) {
			c.bad("%s: %s knows no variable %s", name, program, variable)
		}
	}
	for variable, value := range s.Environment {
		if own := c.own(s); value != "" && strings.HasSuffix(variable, "_FILE") && own != nil {
			c.secretFile(name, s, variable, value)
		}
	}
	if host, port, ok := strings.Cut(s.Environment["TEMPORAL_ADDRESS"], ":"); ok {
		c.reaches(name, host, port, "7233", "TEMPORAL_ADDRESS")
	}
	if u, err := url.Parse(s.Environment["TARRY_SERVER"]); err != nil || u.Host != "" {
		c.reaches(name, u.Hostname(), u.Port(), strings.Join(c.listens(u.Hostname(), c.compose.Services[u.Hostname()]), ""), "TARRY_SERVER")
	}
	if raw := s.Environment["TARRY_DATABASE_URL"]; raw != "" {
		u, err := url.Parse(raw)
		if err != nil {
			c.bad("%s: TARRY_DATABASE_URL is not a URL", name)
			return
		}
		c.reaches(name, u.Hostname(), u.Port(), "5432", "TARRY_DATABASE_URL")
		c.database(name, strings.TrimPrefix(u.Path, "/"), u.User.Username())
	}
	for _, host := range []string{"POSTGRES_SEEDS", "SQL_HOST"} {
		if s.Environment[host] != "" {
			c.reaches(name, s.Environment[host], s.Environment["DB_PORT"]+s.Environment["SQL_PORT"], "5432", host)
		}
	}
}

// reaches checks that host is a service that shares a network with name, and that it listens on the port.
func (c *checker) reaches(name, host, port, listens, what string) {
	other, ok := c.compose.Services[host]
	switch {
	case !ok:
		c.bad("%s: %s names %q, which is no service", name, what, host)
		return
	case port != listens:
		c.bad("%s: %s names port %s of %s, which listens on %s", name, what, port, host, listens)
	}
	for network := range other.Networks {
		if _, shared := c.compose.Services[name].Networks[network]; shared {
			return
		}
	}
	c.bad("%s: shares no network with %s", name, host)
}

func (c *checker) commands(name string, s service) {
	program := c.program(s)
	switch own := c.own(s); {
	case own == nil:
	case !slices.ContainsFunc(own.copies, func(f copied) bool { return f.target == program }):
		c.bad("%s: the image has no %s", name, program)
	case filepath.Base(program) == "starter":
		c.starter(name, s.Command)
	case len(s.Command) > 0:
		c.bad("%s: %s takes no command", name, program)
	}
	if s.Healthcheck == nil {
		return
	}
	test := s.Healthcheck.Test
	if len(test) < 2 || test[0] != "CMD" {
		c.bad("%s: a health check without CMD needs a shell", name)
		return
	}
	if own := c.own(s); own != nil {
		if !slices.ContainsFunc(own.copies, func(f copied) bool { return f.target == test[1] }) {
			c.bad("%s: the image has no %s", name, test[1])
		}
		if filepath.Base(test[1]) == "starter" {
			c.starter(name, test[2:])
			c.ownAddress(name, s, test[len(test)-1])
		}
	}
}

func (c *checker) starter(name string, args []string) {
	if problem := c.known.programs.starter(c.t, args); problem != "" {
		c.bad("%s: %s", name, problem)
	}
}

// flag is the value of --name in a command.
func flag(command []string, name string) string {
	for _, arg := range command {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// ownAddress checks that a URL leads to the service itself.
func (c *checker) ownAddress(name string, s service, raw string) {
	u, err := url.Parse(raw)
	if err != nil {
		c.bad("%s: %q is not a URL", name, raw)
		return
	}
	if !slices.Contains(c.listens(name, s), u.Port()) {
		c.bad("%s: the health check asks port %s, which nothing listens on", name, u.Port())
	}
}

var (
	caddyPort = regexp.MustCompile(`(?m)^\s*https?_port (\d+)$`)
	uiPort    = regexp.MustCompile(`(?m)^port: (\d+)$`)
)

// listens are the ports that a service listens on.
func (c *checker) listens(name string, s service) (ports []string) {
	for _, variable := range []string{"TARRY_HTTP_ADDR", "TARRY_ADMIN_ADDR"} {
		if _, port, ok := strings.Cut(s.Environment[variable], ":"); ok {
			ports = append(ports, port)
		}
	}
	for _, f := range []string{"provider-addr", "mcp-addr"} {
		if _, port, ok := strings.Cut(flag(s.Command, f), ":"); ok {
			ports = append(ports, port)
		}
	}
	switch name {
	case "proxy":
		for _, m := range caddyPort.FindAllStringSubmatch(c.files["deploy/Caddyfile"], -1) {
			ports = append(ports, m[1])
		}
	case "temporal-ui":
		for _, m := range uiPort.FindAllStringSubmatch(c.files["deploy/temporal/ui.yaml"], -1) {
			ports = append(ports, m[1])
		}
	}
	return ports
}

func (c *checker) ports(name string, s service) {
	for _, port := range s.Ports {
		i := strings.LastIndex(port, ":")
		outside, inside := port[:max(i, 0)], port[i+1:]
		if !slices.Contains(c.listens(name, s), inside) {
			c.bad("%s: port %s is published, and nothing listens on it", name, inside)
		}
		if name != "proxy" && !strings.HasPrefix(outside, "127.0.0.1:") {
			c.bad("%s: port %s is published beyond loopback", name, inside)
		}
	}
	for _, which := range []string{"provider", "mcp"} {
		if raw := flag(s.Command, which+"-url"); raw != "" {
			u, err := url.Parse(raw)
			_, port, _ := strings.Cut(flag(s.Command, which+"-addr"), ":")
			if err != nil || u.Port() != port {
				c.bad("%s: --%s-url is at another port than --%s-addr", name, which, which)
				continue
			}
			if !slices.Contains(s.Networks["front"].Aliases, u.Hostname()) {
				c.bad("%s: --%s-url is at %s, which no alias leads to", name, which, u.Hostname())
			}
		}
	}
}

func (c *checker) hardened(name string, s service) {
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		c.bad("%s: is not read-only, without capabilities and without new privileges", name)
	}
	user := s.User
	if own := c.own(s); own != nil && user == "" {
		user = own.user
	}
	if !regexp.MustCompile(`^[1-9]\d*:[1-9]\d*$`).MatchString(user) {
		c.bad("%s: user %q is not a number other than root's", name, user)
	}
}

func (c *checker) dependencies(name string, s service) {
	for on, how := range s.DependsOn {
		other, ok := c.compose.Services[on]
		if !ok {
			c.bad("%s: depends on %q, which is no service", name, on)
			continue
		}
		own := c.own(other)
		switch how.Condition {
		case "service_started":
		case "service_healthy":
			if other.Healthcheck == nil && (own == nil || !own.health) {
				c.bad("%s: waits for the health of %s, which has no check", name, on)
			}
		case "service_completed_successfully":
			if other.Restart != "on-failure" {
				c.bad("%s: waits for the end of %s, which is started again", name, on)
			}
		default:
			c.bad("%s: knows no condition %q", name, how.Condition)
		}
		if len(other.Profiles) > 0 && len(s.Profiles) == 0 && (how.Required == nil || *how.Required) {
			c.bad("%s: needs %s, which only a profile starts", name, on)
		}
	}
}

func (c *checker) network(name string, s service) {
	for network, how := range s.Networks {
		defined, ok := c.compose.Networks[network]
		if !ok {
			c.bad("%s: there is no network %q", name, network)
			continue
		}
		if how.Address == "" {
			continue
		}
		addr, err := netip.ParseAddr(how.Address)
		if err != nil || len(defined.Ipam.Config) != 1 {
			c.bad("%s: %s is not an address of a network with one subnet", name, how.Address)
			continue
		}
		if subnet, err := netip.ParsePrefix(defined.Ipam.Config[0].Subnet); err != nil || !subnet.Contains(addr) {
			c.bad("%s: %s is outside of network %s", name, how.Address, network)
		}
	}
	if len(s.Networks) == 0 && s.NetworkMode != "none" {
		c.bad("%s: is in no network", name)
	}
}
