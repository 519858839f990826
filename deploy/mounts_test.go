package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// mount is a volume of a service.
type mount struct {
	source, target string
	readOnly       bool
}

func (m mount) named() bool { return !strings.ContainsAny(m.source, "./") }

func mountsOf(s service) (out []mount) {
	for _, text := range s.Volumes {
		parts := strings.Split(text, ":")
		m := mount{source: parts[0]}
		if len(parts) > 1 {
			m.target = parts[1]
		}
		m.readOnly = len(parts) > 2 && parts[2] == "ro"
		out = append(out, m)
	}
	return out
}

func mounted(s service, target string) (mount, bool) {
	for _, m := range mountsOf(s) {
		if m.target == target {
			return m, true
		}
	}
	return mount{}, false
}

// theirs are folders that whoever runs it makes.
func theirs(source string) bool {
	return source == "./agents" || strings.HasPrefix(source, "./secrets")
}

func (c *checker) mounts(name string, s service) {
	for _, m := range mountsOf(s) {
		if m.named() {
			if _, ok := c.compose.Volumes[m.source]; !ok {
				c.bad("%s: there is no volume %q", name, m.source)
			}
			continue
		}
		if !m.readOnly {
			c.bad("%s: %s of this machine can be written to", name, m.source)
		}
		if _, err := os.Stat(filepath.Join(root, m.source)); err != nil && !theirs(m.source) {
			c.bad("%s: there is no %s", name, m.source)
		}
	}
	for variable, volume := range map[string]string{"TARRY_DATA_DIR": "keyset", "TARRY_AGENTS_DIR": "", "TARRY_SECRETS_DIR": "", "SSL_CERT_DIR": "", "DYNAMIC_CONFIG_FILE_PATH": ""} {
		path := s.Environment[variable]
		if path == "" {
			continue
		}
		m, ok := mounted(s, path)
		if !ok || volume != "" && m.source != volume {
			c.bad("%s: %s is %s, where %s is not mounted", name, variable, path, volume)
		}
	}
	for _, f := range []string{"tls", "ca"} {
		if path := flag(s.Command, f); path != "" {
			if _, ok := mounted(s, path); !ok {
				c.bad("%s: --%s is %s, where nothing is mounted", name, f, path)
			}
		}
	}
	if scripts := s.Environment["TARRY_SCRIPTS_DIR"]; scripts != "" && !strings.HasPrefix(scripts, s.Environment["TARRY_AGENTS_DIR"]+"/") {
		c.bad("%s: TARRY_SCRIPTS_DIR is not below TARRY_AGENTS_DIR", name)
	}
	if len(s.Entrypoint) > 1 && s.Entrypoint[0] == "/bin/sh" {
		if _, ok := mounted(s, s.Entrypoint[1]); !ok {
			c.bad("%s: runs %s, which is not mounted", name, s.Entrypoint[1])
		}
	}
}

const secretsFolder = "/run/secrets/"

// secretFile checks that a path is that of a secret which the service has.
func (c *checker) secretFile(name string, s service, what, path string) {
	secret, ok := strings.CutPrefix(path, secretsFolder)
	if _, written := mounted(s, filepath.Dir(path)); written && !ok { // by another service
		return
	}
	if !ok || !slices.Contains(s.Secrets, secret) {
		c.bad("%s: %s is %s, which is no secret of it", name, what, path)
	}
}

var secretPath = regexp.MustCompile(secretsFolder + `(\w+)`)

func (c *checker) secrets(name string, s service) {
	for _, secret := range s.Secrets {
		if _, ok := c.compose.Secrets[secret]; !ok {
			c.bad("%s: there is no secret %q", name, secret)
		}
	}
	if path := flag(s.Command, "client-secret-file"); path != "" {
		c.secretFile(name, s, "--client-secret-file", path)
	}
	used := strings.Join(s.Command, " ")
	for _, value := range s.Environment {
		used += " " + value
	}
	for _, m := range mountsOf(s) { // scripts
		used += c.files[strings.TrimPrefix(m.source, "./")]
	}
	for _, m := range secretPath.FindAllStringSubmatch(used, -1) {
		if !slices.Contains(s.Secrets, m[1]) {
			c.bad("%s: reads secret %s, which it is not given", name, m[1])
		}
	}
	for _, secret := range s.Secrets {
		if !strings.Contains(used, secretsFolder+secret) {
			c.bad("%s: is given secret %s, which it does not read", name, secret)
		}
	}
}

// topLevel checks that what is defined is used, and that secrets.sh makes the secrets.
func (c *checker) topLevel() {
	used := map[string]bool{}
	for _, s := range c.compose.Services {
		for _, m := range mountsOf(s) {
			used[m.source] = true
		}
		for _, secret := range s.Secrets {
			used[secret] = true
		}
		for network := range s.Networks {
			used[network] = true
		}
	}
	for volume := range c.compose.Volumes {
		if !used[volume] {
			c.bad("volume %s is not used", volume)
		}
	}
	for network := range c.compose.Networks {
		if !used[network] {
			c.bad("network %s is not used", network)
		}
	}
	for secret, how := range c.compose.Secrets {
		if !used[secret] {
			c.bad("secret %s is not used", secret)
		}
		if filepath.Base(how.File) != secret || !regexp.MustCompile(`(?m)^for name in .*\b`+secret+`\b`).MatchString(c.files["deploy/secrets.sh"]) {
			c.bad("secret %s: deploy/secrets.sh does not make %s", secret, how.File)
		}
	}
}

// envFile checks that its variables are those that docker-compose.yml asks for.
func (c *checker) envFile(name string) {
	profiles := map[string]bool{}
	for _, s := range c.compose.Services {
		for _, p := range s.Profiles {
			profiles[p] = true
		}
	}
	for variable, value := range c.env {
		switch {
		case variable == "COMPOSE_PROFILES":
			if !profiles[value] {
				c.bad("%s: there is no profile %q", name, value)
			}
		case !strings.Contains(c.files["docker-compose.yml"], "${"+variable+":"):
			c.bad("%s: docker-compose.yml does not ask for %s", name, variable)
		}
	}
}
