package tarry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"

	"tarry/auth"
	"tarry/auth/oauth"
	"tarry/auth/vault"
	"tarry/internal/wiring"
	"tarry/store"
)

type httpClient = *http.Client

// Config is the configuration of a worker. [ConfigFromEnv] fills it from variables; Client and Log are the caller's.
type Config struct {
	// Client is the connection to Temporal. Required.
	Client client.Client
	// TaskQueue defaults to "tarry".
	TaskQueue string
	// DatabaseURL is a file path, a sqlite:// URL or a postgres:// URL, the same as the server's. It may hold a password, so
	// that it is a secret: auth.NewSecret(".tarry/tarry.db").
	DatabaseURL auth.Secret
	// DataDir holds the keyset, the same as the server's, unless Keyset says where that is.
	DataDir string
	// Keyset is the file of the keyset or, if it begins with a scheme of KMS, the URI of the key that encrypts it in the
	// database; the same as the server's. Empty means keyset.json in DataDir.
	Keyset string
	// KMS are clients of key management services by the scheme of their URIs; package auth/kms has some.
	KMS vault.Clients
	// AgentsDir is a folder of agent folders; empty means only agents from Go.
	AgentsDir string
	// SecretsDir is where ${file:…} references lie.
	SecretsDir string
	// LookupEnv resolves ${env:TARRY_SECRET_…} references.
	LookupEnv func(string) (string, bool)
	// PublicURL is where browsers reach the server: login links begin with it.
	PublicURL *url.URL
	// ClientMetadataURL is where providers find the server's OAuth client metadata document, which makes it known to them
	// without registration. Empty means /oauth/client-metadata.json below PublicURL if that is https, "none" that there is
	// none; the same as the server's.
	ClientMetadataURL string
	// Vars are the values of ${var:NAME} in agent files.
	Vars map[string]string
	// Dev allows loopback addresses for providers and MCP servers.
	Dev bool
	// AllowStdio permits MCP servers that are started as processes.
	AllowStdio bool
	// StdioEnv is the environment of such a process, besides the variables of its definition. Any variable may be inherited, one
	// with a key too: auth.NewSecret("PATH=/usr/bin").
	StdioEnv []auth.Secret
	// AllowCIDRs are private ranges that may be reached.
	AllowCIDRs []netip.Prefix
	// MaxOpenRequests is how many logins, approvals and questions may wait for one user in one app; a call that would ask one
	// more fails instead. 0 means 100, less than 0 any number.
	MaxOpenRequests int
	// MaxArtifacts is how many MiB of artifacts one user may keep in one app, the same as the server's. 0 means 256, less than 0
	// any number.
	MaxArtifacts int

	GeminiKey, OpenAIKey         auth.Secret
	GeminiBaseURL, OpenAIBaseURL string
	// ScriptsDir switches scripted models on; ScriptJournal is a file that their calls are written to.
	ScriptsDir, ScriptJournal string

	Log *slog.Logger
	// Fault is called at named points of activities; tests hold a process there. Nil in production.
	Fault func(ctx context.Context, point string)
}

// Variables lists the environment variables of a worker with what they mean, for help texts and documentation.
func Variables() map[string]string {
	return map[string]string{
		"TARRY_TASK_QUEUE":             "Temporal task queue (default tarry)",
		"TARRY_DATABASE_URL":           "file path, sqlite:// URL or postgres://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full (default .tarry/tarry.db)",
		"TARRY_DATABASE_PASSWORD_FILE": "file with the password of a postgres:// URL that has none",
		"TARRY_DATA_DIR":               "folder of the keyset (default .tarry)",
		"TARRY_KEYSET":                 "file of the keyset, or URI of the key that encrypts it in the database: hcvault://HOST/MOUNT/keys/NAME, aws-kms://ARN; if unset, keyset.json in TARRY_DATA_DIR",
		"TARRY_AGENTS_DIR":             "folder of agent folders",
		"TARRY_SECRETS_DIR":            "folder of ${file:…} secrets",
		"TARRY_PUBLIC_URL":             "where browsers reach the server (default http://127.0.0.1:8080)",
		"TARRY_CLIENT_METADATA_URL":    "https address of the OAuth client metadata document, or none; if unset, /oauth/client-metadata.json below an https TARRY_PUBLIC_URL",
		"TARRY_VARS":                   "values of ${var:NAME} in agent files: NAME=VALUE,NAME=VALUE",
		"TARRY_DEV":                    "true: loopback providers and servers, short timeouts",
		"TARRY_ALLOW_STDIO":            "true: MCP servers may be started as processes",
		"TARRY_STDIO_ENV":              "names of variables that such processes inherit, separated by commas (default PATH,HOME,TMPDIR)",
		"TARRY_ALLOW_CIDRS":            "private address ranges that may be reached, separated by commas",
		"TARRY_MAX_OPEN_REQUESTS":      "logins, approvals and questions that may wait for one user in one app (default 100; 0: any number)",
		"TARRY_MAX_ARTIFACTS":          "MiB of artifacts that one user may keep in one app (default 256; 0: any number)",
		"TARRY_SCRIPTS_DIR":            "folder of scripts for scripted/… models",
		"TARRY_SCRIPT_JOURNAL":         "file to which calls of scripted models are written",
	}
}

// ConfigFromEnv reads the variables that [Variables] lists, and the model keys GEMINI_API_KEY (or GOOGLE_API_KEY),
// OPENAI_API_KEY and OPENAI_BASE_URL. It reads the files that TARRY_DATABASE_PASSWORD_FILE, GEMINI_API_KEY_FILE and
// OPENAI_API_KEY_FILE name. It reports every problem, joined.
func ConfigFromEnv(lookup func(string) (string, bool)) (Config, error) {
	e := env{lookup: lookup}
	c := Config{
		TaskQueue:         e.text("TARRY_TASK_QUEUE", "tarry"),
		DatabaseURL:       auth.NewSecret(e.database()),
		DataDir:           e.text("TARRY_DATA_DIR", ".tarry"),
		Keyset:            e.text("TARRY_KEYSET", ""),
		AgentsDir:         e.text("TARRY_AGENTS_DIR", ""),
		SecretsDir:        e.text("TARRY_SECRETS_DIR", ""),
		LookupEnv:         lookup,
		PublicURL:         e.url("TARRY_PUBLIC_URL", "http://127.0.0.1:8080"),
		ClientMetadataURL: e.text("TARRY_CLIENT_METADATA_URL", ""),
		Vars:              e.pairs("TARRY_VARS"),
		Dev:               e.flag("TARRY_DEV"),
		AllowStdio:        e.flag("TARRY_ALLOW_STDIO"),
		StdioEnv:          e.inherited("TARRY_STDIO_ENV", "PATH,HOME,TMPDIR"),
		AllowCIDRs:        e.prefixes("TARRY_ALLOW_CIDRS"),
		MaxOpenRequests:   e.most("TARRY_MAX_OPEN_REQUESTS", store.DefaultOpenRequests),
		MaxArtifacts:      e.most("TARRY_MAX_ARTIFACTS", store.DefaultArtifacts>>20),
		GeminiKey:         auth.NewSecret(e.key("GEMINI_API_KEY", e.text("GOOGLE_API_KEY", ""))),
		GeminiBaseURL:     e.text("GEMINI_BASE_URL", ""),
		OpenAIKey:         auth.NewSecret(e.key("OPENAI_API_KEY", "")),
		OpenAIBaseURL:     e.text("OPENAI_BASE_URL", ""),
		ScriptsDir:        e.text("TARRY_SCRIPTS_DIR", ""),
		ScriptJournal:     e.text("TARRY_SCRIPT_JOURNAL", ""),
	}
	if _, err := oauth.MetadataURL(c.ClientMetadataURL, c.PublicURL, c.Dev); err != nil {
		e.errs = append(e.errs, fmt.Errorf("TARRY_CLIENT_METADATA_URL: %w", err))
	}
	return c, errors.Join(e.errs...)
}

func (c Config) wiring() wiring.Config {
	return wiring.Config{
		DatabaseURL: c.DatabaseURL, DataDir: c.DataDir, Keyset: c.Keyset, KMS: c.KMS, SecretsDir: c.SecretsDir, LookupEnv: c.LookupEnv, PublicURL: c.PublicURL,
		ClientMetadataURL: c.ClientMetadataURL, Dev: c.Dev, AllowCIDRs: c.AllowCIDRs, MaxOpenRequests: c.MaxOpenRequests, MaxArtifacts: c.MaxArtifacts, Log: c.Log, Fault: c.Fault,
	}
}

// env reads variables and collects what is wrong with them.
type env struct {
	lookup func(string) (string, bool)
	errs   []error
}

func (e *env) text(name, fallback string) string {
	if v, ok := e.lookup(name); ok && v != "" {
		return v
	}
	return fallback
}

// database puts the password from a file into the URL.
func (e *env) database() string {
	address, file := e.text("TARRY_DATABASE_URL", ".tarry/tarry.db"), e.text("TARRY_DATABASE_PASSWORD_FILE", "")
	if file == "" {
		return address
	}
	problem := func(text string) string {
		e.errs = append(e.errs, errors.New("TARRY_DATABASE_PASSWORD_FILE: "+text))
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.User.Username() == "" {
		return problem("is for a TARRY_DATABASE_URL such as postgres://USER@HOST/DATABASE")
	}
	if _, twice := u.User.Password(); twice {
		return problem("TARRY_DATABASE_URL has a password already; leave one of them out")
	}
	text, err := secretFile(file)
	if err != nil {
		return problem(err.Error())
	}
	if text == "" {
		return problem(file + " is empty")
	}
	u.User = url.UserPassword(u.User.Username(), text)
	return u.String()
}

// key is a variable or the content of the file that NAME_FILE names; an empty file is an unset variable.
func (e *env) key(name, fallback string) string {
	file := e.text(name+"_FILE", "")
	if file == "" {
		return e.text(name, fallback)
	}
	text, err := secretFile(file)
	switch {
	case err != nil:
		e.errs = append(e.errs, fmt.Errorf("%s_FILE: %w", name, err))
	case e.text(name, "") != "":
		e.errs = append(e.errs, fmt.Errorf("%s_FILE: %s is set as well; leave one of them out", name, name))
	}
	return text
}

func secretFile(file string) (string, error) {
	body, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%s cannot be read: %w", file, errors.Unwrap(err))
	}
	return strings.TrimRight(string(body), "\r\n"), nil
}

func (e *env) flag(name string) bool {
	v := e.text(name, "false")
	on, err := strconv.ParseBool(v)
	if err != nil {
		e.errs = append(e.errs, fmt.Errorf("%s: %q is neither true nor false", name, v))
	}
	return on
}

// most is a bound, of which 0 means that there is none; as a Config has it, that is less than 0.
func (e *env) most(name string, fallback int) int {
	v := e.text(name, strconv.Itoa(fallback))
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		e.errs = append(e.errs, fmt.Errorf("%s: %q is not a number such as %d, or 0 for no bound", name, v, fallback))
	}
	if n == 0 {
		return -1
	}
	return n
}

func (e *env) url(name, fallback string) *url.URL {
	v := e.text(name, fallback)
	u, err := url.Parse(v)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		e.errs = append(e.errs, fmt.Errorf("%s: %q is not an http(s) URL such as %s", name, v, fallback))
	}
	return u
}

func (e *env) pairs(name string) map[string]string {
	out := map[string]string{}
	for pair := range strings.SplitSeq(e.text(name, ""), ",") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			e.errs = append(e.errs, fmt.Errorf("%s: %q is not NAME=VALUE", name, pair))
		}
		out[key] = value
	}
	return out
}

func (e *env) prefixes(name string) (out []netip.Prefix) {
	for text := range strings.SplitSeq(e.text(name, ""), ",") {
		if text == "" {
			continue
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			e.errs = append(e.errs, fmt.Errorf("%s: %q is not a range such as 10.0.0.0/8", name, text))
			continue
		}
		out = append(out, p)
	}
	return out
}

// inherited is the part of this process's environment that name lists. Tarry's own variables, and with them its secrets,
// are not for others.
func (e *env) inherited(name, fallback string) (out []auth.Secret) {
	for variable := range strings.SplitSeq(e.text(name, fallback), ",") {
		if variable = strings.TrimSpace(variable); variable == "" {
			continue
		}
		if strings.HasPrefix(variable, "TARRY_") || strings.Contains(variable, "=") {
			e.errs = append(e.errs, fmt.Errorf("%s: %q is not the name of a variable that may be inherited, such as PATH; give a server its secrets in env of its definition", name, variable))
			continue
		}
		if value, ok := e.lookup(variable); ok {
			out = append(out, auth.NewSecret(variable+"="+value))
		}
	}
	return out
}
