package tarry_test

import (
	"log/slog"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"tarry"
	"tarry/agent"
	"tarry/auth"
)

func lookup(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

func TestConfigFromEnv(t *testing.T) {
	t.Parallel()
	c, err := tarry.ConfigFromEnv(lookup(map[string]string{
		"TARRY_VARS": "A=1,B=x=y", "TARRY_DEV": "true", "TARRY_ALLOW_CIDRS": "10.0.0.0/8,192.168.1.0/24", "GOOGLE_API_KEY": "key",
		"TARRY_PUBLIC_URL": "https://tarry.example.com", "TARRY_TASK_QUEUE": "", "PATH": "/bin", "HOME": "/home/x", "SECRET": "s",
	}))
	require.NoError(t, err)
	require.Equal(t, map[string]string{"A": "1", "B": "x=y"}, c.Vars)
	require.True(t, c.Dev)
	require.Len(t, c.AllowCIDRs, 2)
	require.Equal(t, "key", c.GeminiKey.Reveal())
	require.Equal(t, "tarry.example.com", c.PublicURL.Host)
	require.Equal(t, "tarry", c.TaskQueue, "an empty variable is an unset one")
	require.Equal(t, ".tarry/tarry.db", c.DatabaseURL.Reveal())
	require.Len(t, c.StdioEnv, 2)
	require.Equal(t, "PATH=/bin", c.StdioEnv[0].Reveal())
	require.Equal(t, "HOME=/home/x", c.StdioEnv[1].Reveal())
}

// Every problem is reported, with the variable, its value and the mend.
func TestConfigFromEnvReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := tarry.ConfigFromEnv(lookup(map[string]string{
		"TARRY_VARS": "A", "TARRY_DEV": "perhaps", "TARRY_ALLOW_CIDRS": "10.0.0.0", "TARRY_PUBLIC_URL": "tarry.example.com",
		"TARRY_CLIENT_METADATA_URL": "http://tarry.example.com/client",
		"TARRY_STDIO_ENV":           "PATH,TARRY_SECRET_A",
	}))
	for _, part := range []string{
		`TARRY_VARS: "A" is not NAME=VALUE`, `TARRY_DEV: "perhaps" is neither true nor false`,
		`TARRY_STDIO_ENV: "TARRY_SECRET_A" is not the name of a variable that may be inherited`,
		`TARRY_ALLOW_CIDRS: "10.0.0.0" is not a range such as 10.0.0.0/8`, `TARRY_PUBLIC_URL: "tarry.example.com" is not an http(s) URL`,
		`TARRY_CLIENT_METADATA_URL: "http://tarry.example.com/client" is not an https URL`,
	} {
		require.ErrorContains(t, err, part)
	}
}

// What is wrong with an application shows before anything is opened or polled.
func TestNewWorkerChecksTheApplication(t *testing.T) {
	t.Parallel()
	temporal, err := client.NewLazyClient(client.Options{})
	require.NoError(t, err)
	t.Cleanup(temporal.Close)
	one := func(tools ...agent.Tool) *agent.Definition {
		return &agent.Definition{App: "one", Root: &agent.Agent{Name: "one", Kind: agent.KindLLM, Model: "acme/x", Tools: tools}}
	}
	for name, tc := range map[string]struct {
		agents []*agent.Definition
		want   string
	}{
		"two apps of one name":         {[]*agent.Definition{one(), one()}, `two agents are called "one"`},
		"a tool that is not there":     {[]*agent.Definition{one(agent.Tool{Function: "shop.search"})}, `"shop.search", which is not registered`},
		"a callback that is not there": {[]*agent.Definition{{App: "one", Root: &agent.Agent{Name: "one", Kind: agent.KindLLM, Model: "acme/x", Callbacks: agent.Callbacks{agent.BeforeTool: {{Name: "check"}}}}}}, `agent one: before_tool_callbacks names "check", which is not registered; there are []`},
		"a definition with faults":     {[]*agent.Definition{{App: "one", Root: &agent.Agent{Name: "user", Kind: agent.KindLLM}}}, "choose another name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			_, err := tarry.NewWorker(t.Context(), tarry.App{Agents: tc.agents}, tarry.Config{
				Client: temporal, Log: slog.New(slog.DiscardHandler), PublicURL: &url.URL{Scheme: "http", Host: "127.0.0.1:8080"},
				DataDir: dir, DatabaseURL: auth.NewSecret(filepath.Join(dir, "tarry.db")),
			})
			require.ErrorContains(t, err, tc.want)
			require.NoFileExists(t, filepath.Join(dir, "tarry.db"))
		})
	}
}
