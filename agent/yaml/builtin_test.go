package yaml_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent"
	"tarry/agent/yaml"
)

// ADK's own tools are written with or without their package.
func TestBuiltinTools(t *testing.T) {
	t.Parallel()
	text := "name: a\nmodel: m\ninstruction: Read {artifact.img/a.txt?}.\ntools:\n"
	var want []agent.Tool
	for _, name := range agent.Builtins() {
		text += "  - name: " + name + "\n"
		want = append(want, agent.Tool{Builtin: name})
	}
	dir := filepath.Join(t.TempDir(), "app")
	require.NoError(t, os.Mkdir(dir, 0o700))
	file := filepath.Join(dir, "root_agent.yaml")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	def, err := yaml.LoadApp(dir, yaml.Options{})
	require.NoError(t, err)
	require.Equal(t, want, def.Root.Tools)

	require.NoError(t, os.WriteFile(file, []byte("name: a\nmodel: m\ntools:\n  - name: google.adk.tools.load_artifacts\n  - name: load_artifacts\n"), 0o600))
	_, err = yaml.LoadApp(dir, yaml.Options{})
	require.ErrorContains(t, err, "load_artifacts is there twice")
}
