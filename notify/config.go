package notify

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"tarry/agent"
)

// Endpoint is where webhooks go.
type Endpoint struct {
	// Name is the operator's, for lists and logs; deliveries belong to it.
	Name string `yaml:"name"`
	URL  string `yaml:"url"`
	// Secrets are references; two while one takes the place of the other: each signs.
	Secrets []agent.SecretRef `yaml:"secrets"`
	// Apps are those that the endpoint learns of; "*" means all.
	Apps []string `yaml:"apps"`
	// Types are those that it learns of, with * at the end for all that begin so; none means all.
	Types []string `yaml:"types"`
}

type file struct {
	Webhooks []Endpoint `yaml:"webhooks"`
}

// Load reads endpoints from a file in YAML or JSON. It reports every problem, joined, with the endpoint and the field.
func Load(path string) ([]Endpoint, error) {
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	var f file
	d := yaml.NewDecoder(bytes.NewReader(body))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var errs []error
	seen := map[string]bool{}
	for i, e := range f.Webhooks {
		if seen[e.Name] {
			errs = append(errs, fmt.Errorf("%s: webhooks[%d].name: %q is there twice", path, i, e.Name))
		}
		seen[e.Name] = true
		for _, problem := range e.check() {
			errs = append(errs, fmt.Errorf("%s: webhooks[%d].%w", path, i, problem))
		}
	}
	return f.Webhooks, errors.Join(errs...)
}

const maxSecrets = 2

func (e Endpoint) check() (out []error) {
	add := func(format string, args ...any) { out = append(out, fmt.Errorf(format, args...)) }
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`).MatchString(e.Name) {
		add("name: %q is no name such as billing: small letters, digits, - and _", e.Name)
	}
	u, err := url.Parse(e.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		add("url: not an https URL such as https://hooks.example/tarry")
	case u.User != nil:
		add("url: has a user or password; the receiver knows us by the signature")
	}
	if len(e.Secrets) == 0 || len(e.Secrets) > maxSecrets {
		add("secrets: one reference such as ${env:TARRY_SECRET_HOOK}, or two while one takes the place of the other; there are %d", len(e.Secrets))
	}
	for i, s := range e.Secrets {
		if _, err := s.Parse(); err != nil {
			add("secrets[%d]: %w", i, err)
		}
	}
	if len(e.Apps) == 0 {
		add(`apps: names of apps, or ["*"] for all of them`)
	}
	for i, pattern := range e.Types {
		if !slices.ContainsFunc(Types(), func(kind string) bool { return match(pattern, kind) }) {
			add("types[%d]: %q is none of %s", i, pattern, strings.Join(Types(), ", "))
		}
	}
	return out
}
