package deploy_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry"
)

var (
	temporalModule   = regexp.MustCompile(`go\.temporal\.io/server v(\S+)`)
	templateVariable = regexp.MustCompile(`env "([A-Z0-9_]+)"`)
	toolVariable     = regexp.MustCompile(`EnvVar: "(SQL_[A-Z_]+)"`)
	scriptVariable   = regexp.MustCompile(`\$([A-Z_]+)`)
)

// learn asks the programs, and the source of the Temporal server that the tests run, for the variables that they read.
func learn(t *testing.T, all files) knowledge {
	t.Helper()
	k := knowledge{programs: buildPrograms(t), variables: map[string][]string{
		"postgres": {"POSTGRES_USER", "POSTGRES_PASSWORD_FILE", "POSTGRES_INITDB_ARGS", "POSTGRES_DB"}, // of the image's entry point
	}}
	for _, name := range []string{"worker", "server", "starter"} {
		k.variables[name] = k.programs.variables(t, name)
	}
	k.temporalVersion = temporalModule.FindStringSubmatch(all["devserver/go.mod"])[1]
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.temporal.io/server")
	cmd.Dir = filepath.Join(root, "devserver")
	out, err := cmd.Output()
	require.NoError(t, err)
	for name, source := range map[string]struct {
		file    string
		pattern *regexp.Regexp
	}{
		"temporal":        {"common/config/config_template_embedded.yaml", templateVariable},
		"temporal-schema": {"tools/sql/main.go", toolVariable},
	} {
		body, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), source.file))
		require.NoError(t, err)
		for _, m := range source.pattern.FindAllStringSubmatch(string(body), -1) {
			k.variables[name] = append(k.variables[name], m[1])
		}
		require.NotEmpty(t, k.variables[name])
	}
	for _, m := range scriptVariable.FindAllStringSubmatch(all["deploy/temporal/namespace.sh"], -1) {
		k.variables["temporal-namespace"] = append(k.variables["temporal-namespace"], m[1])
	}
	return k
}

// What docker-compose.yml and the Dockerfile say is what the programs know; a typo anywhere in them is found.
func TestCompose(t *testing.T) {
	t.Parallel()
	all := readFiles(t)
	known := learn(t, all)
	for _, env := range []string{"deploy/demo.env", "deploy/example.env"} {
		require.Empty(t, check(t, all, env, known), env)
	}
	for name, tc := range typos() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broken := maps.Clone(all)
			require.Contains(t, broken[tc.file], tc.text, "the table is out of date")
			broken[tc.file] = strings.Replace(broken[tc.file], tc.text, tc.typo, 1)
			require.Contains(t, strings.Join(check(t, broken, "deploy/demo.env", known), "\n"), tc.problem)
		})
	}
}

type typo struct{ file, text, typo, problem string }

func typos() map[string]typo {
	const compose, docker, caddy, demo = "docker-compose.yml", "Dockerfile", "deploy/Caddyfile", "deploy/demo.env"
	return map[string]typo{
		"key":                       {compose, "read_only: true", "readonly: true", "readonly"},
		"variable of both":          {compose, "TARRY_DATA_DIR:", "TARRY_DATADIR:", "server-1: server knows no variable TARRY_DATADIR"},
		"variable of the worker":    {compose, "TARRY_AGENTS_DIR:", "TARRY_AGENT_DIR:", "worker: worker knows no variable TARRY_AGENT_DIR"},
		"variable of the server":    {compose, "TARRY_OIDC_ISSUER: ", "TARRY_OIDC_ISUER: ", "server-2: server knows no variable TARRY_OIDC_ISUER"},
		"worker's at the server":    {compose, "    TARRY_HTTP_ADDR:", "    TARRY_VARS: A=B\n    TARRY_HTTP_ADDR:", "server-1: server knows no variable TARRY_VARS"},
		"variable of Temporal":      {compose, "POSTGRES_SEEDS:", "POSTGRES_SEED:", "temporal: temporal knows no variable POSTGRES_SEED"},
		"variable of its tool":      {compose, "SQL_PLUGIN:", "SQL_PLUG:", "temporal-schema: temporal-schema knows no variable SQL_PLUG"},
		"variable of PostgreSQL":    {compose, "POSTGRES_PASSWORD_FILE:", "POSTGRES_PASS_FILE:", "postgres: postgres knows no variable POSTGRES_PASS_FILE"},
		"variable of the proxy":     {caddy, "{$TARRY_SITE:", "{$TARRY_SIT:", "proxy: caddy knows no variable TARRY_SITE"},
		"variable of the env file":  {demo, "TARRY_ALLOW_CIDRS=", "TARRY_ALLOWED_CIDRS=", "does not ask for TARRY_ALLOWED_CIDRS"},
		"missing in the env file":   {demo, "TARRY_PUBLIC_URL=", "#TARRY_PUBLIC_URL=", "not set: TARRY_PUBLIC_URL"},
		"profile":                   {demo, "PROFILES=demo", "PROFILES=dem", `no profile "dem"`},
		"host of the database":      {compose, "@postgres:5432/", "@postgre:5432/", `TARRY_DATABASE_URL names "postgre", which is no service`},
		"port of the database":      {compose, "@postgres:5432/", "@postgres:5433/", "port 5433 of postgres, which listens on 5432"},
		"name of the database":      {compose, "5432/tarry?", "5432/tary?", `makes no database "tary" of "tarry"`},
		"user of the database":      {compose, "//tarry@postgres", "//tary@postgres", `makes no database "tarry" of "tary"`},
		"host of Temporal":          {compose, "TEMPORAL_ADDRESS: temporal:7233", "TEMPORAL_ADDRESS: temporl:7233", `names "temporl", which is no service`},
		"port of Temporal":          {compose, "TEMPORAL_ADDRESS: temporal:7233", "TEMPORAL_ADDRESS: temporal:7223", "port 7223 of temporal"},
		"Temporal's user":           {compose, "SQL_USER: temporal", "SQL_USER: temporl", `makes no database "temporal" of "temporl"`},
		"Temporal's version":        {compose, "temporalio/server:1.30.4", "temporalio/server:1.29.0", "is not of version 1.30.4"},
		"image without version":     {compose, "temporalio/ui:2.48.3", "temporalio/ui", `image "temporalio/ui" has no version`},
		"port of the server":        {compose, "TARRY_HTTP_ADDR: 0.0.0.0:8080", "TARRY_HTTP_ADDR: 0.0.0.0:8088", "port 8080 of server-1, which listens on 8088"},
		"port of the proxy":         {caddy, "http_port 8080", "http_port 8088", "proxy: port 8080 is published, and nothing listens on it"},
		"port of the UI":            {compose, "127.0.0.1:8233:8080", "127.0.0.1:8233:8088", "temporal-ui: port 8088 is published"},
		"port beyond loopback":      {compose, "127.0.0.1:8233:8080", "8233:8080", "temporal-ui: port 8080 is published beyond loopback"},
		"exposed port":              {docker, "EXPOSE 8080 8443", "EXPOSE 8080 8444", "stage proxy exposes port 8444"},
		"upstream":                  {caddy, "server-1:8080 server-2:8080", "server-1:8080 server-3:8080", `names "server-3", which is no service`},
		"upstream's port":           {caddy, "server-2:8080", "server-2:8081", "port 8081 of server-2, which listens on 8080"},
		"one upstream":              {caddy, "server-1:8080 server-2:8080", "server-1:8080", "leads to [server-1], and the servers are [server-1 server-2]"},
		"upstream's health":         {caddy, "/readyz", "/ready", "another route than /readyz"},
		"trusted proxy":             {compose, "TARRY_TRUSTED_PROXIES: 172.30.80.10/32", "TARRY_TRUSTED_PROXIES: 172.30.80.0/24", "the proxy is 172.30.80.10/32"},
		"address outside":           {compose, "ipv4_address: 172.30.80.10", "ipv4_address: 172.30.81.10", "172.30.81.10 is outside of network front"},
		"variable of the client":    {compose, "TARRY_TOKEN_FILE:", "TARRY_TOKENFILE:", "cli: starter knows no variable TARRY_TOKENFILE"},
		"server of the client":      {compose, "http://server-1:8080", "http://server:8080", `TARRY_SERVER names "server", which is no service`},
		"command":                   {compose, "command: [setup]", "command: [set-up]", "setup: starter"},
		"flag":                      {compose, "--provider-addr=", "--provider-address=", "demo-services: starter: unknown flag: --provider-address"},
		"flag of the certificates":  {compose, "--ca=/etc/tarry/ca,", "--cas=/etc/tarry/ca,", "demo-certificates: starter: unknown flag: --cas"},
		"health command":            {compose, "starter, health,", "starter, healthy,", "demo-services: starter"},
		"health program":            {compose, "/usr/local/bin/starter, health", "/usr/bin/starter, health", "the image has no /usr/bin/starter"},
		"health port":               {compose, "localhost:8090/.well-known", "localhost:8092/.well-known", "asks port 8092, which nothing listens on"},
		"health through a shell":    {compose, "test: [CMD, nc", "test: [CMD-SHELL, nc", "without CMD needs a shell"},
		"dependency":                {compose, "temporal-schema: {condition", "temporal-scheme: {condition", `depends on "temporal-scheme", which is no service`},
		"condition":                 {compose, "service_started", "service_start", `no condition "service_start"`},
		"health that nobody checks": {compose, "setup: {condition: service_completed_successfully}", "temporal-ui: {condition: service_healthy}", "the health of temporal-ui, which has no check"},
		"dependency on a profile":   {compose, ", required: false", "", "which only a profile starts"},
		"data folder":               {compose, "TARRY_DATA_DIR: /var/lib/tarry", "TARRY_DATA_DIR: /var/lib/tary", "where keyset is not mounted"},
		"keyset of another":         {compose, "- keyset:/var/lib/tarry", "- certificates:/var/lib/tarry", "where keyset is not mounted"},
		"volume":                    {compose, "- postgres:/var", "- postgre:/var", `no volume "postgre"`},
		"folder that is not there":  {compose, "./deploy/temporal/ui.yaml", "./deploy/ui.yaml", "there is no ./deploy/ui.yaml"},
		"script that is not there":  {compose, "/etc/tarry/start.sh:ro", "/etc/tarry/begin.sh:ro", "runs /etc/tarry/start.sh, which is not mounted"},
		"folder to be written":      {compose, "ui.yaml:/home/ui-server/config/docker.yaml:ro", "ui.yaml:/home/ui-server/config/docker.yaml", "can be written to"},
		"secret":                    {compose, "secrets: [tarry_db_password, oidc_client_secret]", "secrets: [tarry_db_pasword, oidc_client_secret]", `no secret "tarry_db_pasword"`},
		"secret's path":             {compose, "/run/secrets/tarry_db_password", "/run/secret/tarry_db_password", "which is no secret of it"},
		"secret of a script":        {"deploy/temporal/start.sh", "temporal_db_password", "tarry_db_password", "temporal: reads secret tarry_db_password, which it is not given"},
		"secret that nobody makes":  {"deploy/secrets.sh", "temporal_db_password", "temporal_password", "deploy/secrets.sh does not make ./secrets/temporal_db_password"},
		"network":                   {compose, "networks: [data, front]", "networks: [dat, front]", `no network "dat"`},
		"no network in common":      {compose, "networks: [data, front]\n    depends_on:\n      postgres", "networks: [front]\n    depends_on:\n      postgres", "worker: shares no network with"},
		"capabilities":              {compose, "cap_drop: [ALL]", "cap_drop: []", "is not read-only, without capabilities"},
		"root":                      {compose, `user: "1000:1000"`, `user: "0:0"`, `user "0:0" is not a number other than root's`},
		"root of our own":           {docker, "USER 65532:65532", "USER root", `worker: user "root" is not`},
		"target":                    {compose, "target: worker", "target: workers", `no stage "workers"`},
		"issuer of the demo":        {demo, "https://id.localhost:8090", "https://id.localhost:8091", "the demo's provider is https://id.localhost:8090"},
		"MCP server of the demo":    {demo, "https://mcp.localhost:8091/mcp", "https://mcp.localhost:8091", "TARRY_VARS does not end in"},
		"alias of the demo":         {compose, "aliases: [id.localhost", "aliases: [idp.localhost", "which no alias leads to"},
		"address of the demo":       {demo, "172.30.80.20/32", "172.30.80.0/24", "the demo's services are at 172.30.80.20/32"},
		"certificate of the demo":   {compose, "/var/lib/demo, id.localhost", "/var/lib/demo, ip.localhost", "no certificate for id.localhost"},
		"site":                      {demo, "TARRY_SITE=http://localhost:8080", "TARRY_SITE=http://localhost:8081", "is not TARRY_PUBLIC_URL"},
		"program that is not built": {docker, "./cmd/worker ./cmd/server", "./cmd/server", "copies /out/worker, which is not built"},
		"program that is not there": {docker, "--from=build /out/worker", "--from=build /out/work", "there is no program work"},
		"entry point":               {docker, `ENTRYPOINT ["/usr/local/bin/server"]`, `ENTRYPOINT ["/usr/bin/server"]`, "stage server has no /usr/bin/server"},
		"health of an image":        {docker, `CMD ["/usr/local/bin/worker", "health"]`, `CMD ["/usr/bin/worker", "health"]`, "stage worker has no /usr/bin/worker"},
		"stage":                     {docker, "FROM base AS worker", "FROM bas AS worker", `"bas", which is neither a stage nor`},
		"stage to copy from":        {docker, "--from=caddy", "--from=cady", `"cady", which is no stage`},
		"file to copy":              {docker, "COPY deploy/Caddyfile", "COPY deploy/Caddy", "copies deploy/Caddy, which is not there"},
		"file that is left out":     {".dockerignore", "!deploy/Caddyfile", "", "which .dockerignore leaves out"},
		"folder to copy":            {docker, "/folders/var/lib/demo /var/lib/demo", "/folders/var/demo /var/lib/demo", "which stage build does not make"},
		"Go":                        {docker, "GO_VERSION=1.26.8", "GO_VERSION=1.25.0", "older than go.mod's"},
		"cgo":                       {docker, "CGO_ENABLED=0", "CGO_ENABLED=1", "not built with CGO_ENABLED=0"},
	}
}

// The build has every package that the programs are made of, and no file that it must not have.
func TestDockerIgnore(t *testing.T) {
	t.Parallel()
	ignore := readFiles(t)[".dockerignore"]
	const files = `{{with .Module}}{{if eq .Path "tarry"}}{{range $.GoFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}{{range $.EmbedFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", files, "./cmd/worker", "./cmd/server", "./cmd/starter")
	cmd.Dir = root
	out, err := cmd.Output()
	require.NoError(t, err)
	list := strings.Fields(string(out))
	require.Greater(t, len(list), 100)
	for _, file := range append(list, "tarry/go.mod", "tarry/go.sum") {
		require.True(t, admitted(ignore, strings.TrimPrefix(file, "tarry/")), file)
	}
	for _, file := range []string{"secrets/postgres_password", ".env", ".git/config", "bin/server", "deploy/demo.env", ".tarry/keyset.json", "tarry.db", "server/signin_test.go", "agent/yaml/testdata/x"} {
		require.False(t, admitted(ignore, file), file)
	}
}

// The values are good as well: the configuration reads them without a complaint.
func TestValues(t *testing.T) {
	t.Parallel()
	all, dir := readFiles(t), t.TempDir()
	for _, env := range []string{"deploy/demo.env", "deploy/example.env"} {
		compose, err := parseCompose(all["docker-compose.yml"], parseEnv(all[env]))
		require.NoError(t, err)
		for _, name := range []string{"server-1", "worker"} {
			s := compose.Services[name]
			for _, secret := range s.Secrets {
				require.NoError(t, os.WriteFile(filepath.Join(dir, secret), []byte("of "+secret), 0o600))
			}
			c, err := tarry.ConfigFromEnv(func(name string) (string, bool) {
				value, ok := s.Environment[name]
				return strings.ReplaceAll(value, secretsFolder, dir+"/"), ok
			})
			require.NoError(t, err, "%s of %s", name, env)
			require.Equal(t, "postgres://tarry:of%20tarry_db_password@postgres:5432/tarry?sslmode=disable", c.DatabaseURL.Reveal())
			require.Equal(t, env == "deploy/demo.env", c.Dev)
		}
	}
}
