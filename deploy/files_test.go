package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"
)

const root = ".."

// composeFile is the part of the Compose specification that the project uses; a key that is not here is a typo.
type composeFile struct {
	Name     string
	Services map[string]service
	Networks map[string]struct {
		Internal bool
		Ipam     struct {
			Config []struct{ Subnet string }
		}
	}
	Volumes map[string]struct{}
	Secrets map[string]struct{ File string }

	Hardened yaml.Node `yaml:"x-hardened"`
	Once     yaml.Node `yaml:"x-once"`
	Shared   yaml.Node `yaml:"x-shared"`
	Server   yaml.Node `yaml:"x-server"`
}

type service struct {
	Image       string
	Build       *struct{ Context, Target string }
	User        string
	Entrypoint  []string
	Command     []string
	Environment map[string]string
	Ports       []string
	Volumes     []string
	Tmpfs       []string
	Secrets     []string
	Profiles    []string
	Networks    networks
	NetworkMode string `yaml:"network_mode"`
	DependsOn   map[string]struct {
		Condition string
		Required  *bool
	} `yaml:"depends_on"`
	Healthcheck *struct {
		Test              []string
		Interval, Timeout string
		Retries           int
		StartPeriod       string `yaml:"start_period"`
	}
	Restart         string
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
	StopGracePeriod string   `yaml:"stop_grace_period"`
	ShmSize         string   `yaml:"shm_size"`
	Deploy          struct{ Replicas int }
	Logging         struct {
		Driver  string
		Options map[string]string
	}
}

type network struct {
	Address string `yaml:"ipv4_address"`
	Aliases []string
}

// networks are a list of names or a map.
type networks map[string]network

func (n *networks) UnmarshalYAML(node *yaml.Node) error {
	*n = networks{}
	if node.Kind == yaml.MappingNode {
		all := map[string]network{}
		if err := node.Decode(&all); err != nil {
			return err
		}
		*n = all
		return nil
	}
	var names []string
	if err := node.Decode(&names); err != nil {
		return err
	}
	for _, name := range names {
		(*n)[name] = network{}
	}
	return nil
}

// files are those that are checked, by their path below the root.
type files map[string]string

func readFiles(t *testing.T) files {
	t.Helper()
	out := files{}
	for _, pattern := range []string{"docker-compose.yml", "Dockerfile", ".dockerignore", "go.mod", "devserver/go.mod", "deploy/Caddyfile", "deploy/*.env", "deploy/*.sh", "deploy/*/*"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, path := range found {
			body, err := os.ReadFile(path)
			require.NoError(t, err)
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			out[filepath.ToSlash(name)] = string(body)
		}
	}
	return out
}

var variable = regexp.MustCompile(`\$\{([A-Z_]+)(?:(:-|:\?)([^}]*))?\}`)

// interpolate is what Compose does with ${NAME}, ${NAME:-default} and ${NAME:?message}.
func interpolate(text string, env map[string]string) (out string, missing []string) {
	out = variable.ReplaceAllStringFunc(text, func(match string) string {
		m := variable.FindStringSubmatch(match)
		if value := env[m[1]]; value != "" {
			return value
		}
		if m[2] == ":-" {
			return m[3]
		}
		missing = append(missing, m[1])
		return ""
	})
	return out, missing
}

func parseCompose(text string, env map[string]string) (*composeFile, error) {
	text, missing := interpolate(text, env)
	if len(missing) > 0 {
		slices.Sort(missing)
		return nil, fmt.Errorf("not set: %s", strings.Join(slices.Compact(missing), ", "))
	}
	out := &composeFile{}
	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(out); err != nil {
		return nil, fmt.Errorf("docker-compose.yml: %w", err)
	}
	return out, nil
}

// parseEnv reads an env file.
func parseEnv(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if name, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out[name] = value
		}
	}
	return out
}

// stage is one of the Dockerfile's; what it takes over from the one that it is built from is in it.
type stage struct {
	name, from, user, entrypoint string
	copies                       []copied
	health                       bool
	healthCommand, text          string
	ports                        []string
	env                          map[string]string
}

type copied struct{ stage, source, target string }

var (
	fromLine   = regexp.MustCompile(`^FROM (?:--platform=\S+ )?(\S+)(?: AS (\S+))?$`)
	copyLine   = regexp.MustCompile(`^COPY((?: --\S+)*) (.+) (\S+)$`)
	quoted     = regexp.MustCompile(`"([^"]+)"`)
	assignment = regexp.MustCompile(`([A-Z_]+)=(?:"([^"]*)"|(\S+))`)
)

// parseDockerfile reads the stages in their order, and the arguments before the first.
func parseDockerfile(text string) (stages []*stage, args map[string]string) {
	args = map[string]string{}
	text = strings.ReplaceAll(text, "\\\n", " ")
	var s *stage
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		if m := fromLine.FindStringSubmatch(line); m != nil {
			s = &stage{from: m[1], name: m[2], env: map[string]string{}}
			for _, before := range stages {
				if before.name == m[1] {
					taken := *before
					s = &taken
					s.from, s.name, s.copies, s.env = m[1], m[2], slices.Clone(before.copies), map[string]string{}
					for k, v := range before.env {
						s.env[k] = v
					}
				}
			}
			stages = append(stages, s)
			continue
		}
		if s == nil {
			if name, value, ok := strings.Cut(rest, "="); ok && word == "ARG" {
				args[name] = value
			}
			continue
		}
		s.text += line + "\n"
		switch word {
		case "USER":
			s.user = rest
		case "ENTRYPOINT":
			s.entrypoint = quoted.FindStringSubmatch(rest)[1]
		case "HEALTHCHECK":
			s.health = true
			if m := quoted.FindStringSubmatch(rest); m != nil {
				s.healthCommand = m[1]
			}
		case "EXPOSE":
			s.ports = strings.Fields(rest)
		case "ENV":
			for _, m := range assignment.FindAllStringSubmatch(rest, -1) {
				s.env[m[1]] = m[2] + m[3]
			}
		case "COPY":
			if m := copyLine.FindStringSubmatch(line); m != nil {
				from := ""
				for flag := range strings.FieldsSeq(m[1]) {
					if name, ok := strings.CutPrefix(flag, "--from="); ok {
						from = name
					}
				}
				for source := range strings.FieldsSeq(m[2]) {
					s.copies = append(s.copies, copied{from, source, m[3]})
				}
			}
		}
	}
	return stages, args
}

// programs are the project's own, built once, to ask them what they know.
type programs struct {
	bin string
	// said are answers of starter, by its command line.
	said *sync.Map
}

func buildPrograms(t *testing.T) programs {
	t.Helper()
	bin := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "./cmd/worker", "./cmd/server", "./cmd/starter") //nolint:gosec // our own
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return programs{bin, &sync.Map{}}
}

var (
	usageLine = regexp.MustCompile(`(?m)^  ([A-Z][A-Z_]+) `)
	mention   = regexp.MustCompile(`\b(TARRY_[A-Z_]+)\b`)
)

// variables are those that a program prints with -h.
func (p programs) variables(t *testing.T, name string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(p.bin, name), "-h").CombinedOutput() //nolint:gosec // our own
	require.NoError(t, err, string(out))
	pattern := usageLine
	if name == "starter" { // which has flags; its help names variables in its text
		pattern = mention
	}
	var names []string
	for _, m := range pattern.FindAllStringSubmatch(string(out), -1) {
		names = append(names, m[1])
	}
	require.NotEmpty(t, names)
	return append(names, "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "SSL_CERT_DIR") // Temporal's and Go's own
}

// starter returns what is wrong with a command line of starter, which it does not run.
func (p programs) starter(t *testing.T, args []string) string {
	t.Helper()
	line := strings.Join(args, " ")
	if said, ok := p.said.Load(line); ok {
		return fmt.Sprint(said)
	}
	problem := p.ask(t, args)
	p.said.Store(line, problem)
	return problem
}

func (p programs) ask(t *testing.T, args []string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(p.bin, "starter"), append(slices.Clone(args), "--help")...).CombinedOutput() //nolint:gosec // our own
	first, _, _ := strings.Cut(string(out), "\n")
	if err != nil {
		return first
	}
	if len(args) == 0 || !strings.Contains(string(out), "\n  starter "+args[0]+" ") {
		return fmt.Sprintf("starter knows no command %v", args)
	}
	return ""
}
