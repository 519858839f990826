package yaml_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/agent/yaml"
)

// Whatever a file holds, the loader gives a valid definition or errors of its own type.
func FuzzLoadApp(f *testing.F) {
	seeds, err := filepath.Glob("testdata/apps/*/root_agent.yaml")
	require.NoError(f, err)
	for _, seed := range seeds {
		content, err := os.ReadFile(seed)
		require.NoError(f, err)
		f.Add(content)
	}
	for _, bad := range badFiles() {
		if len(bad.content) < 4096 {
			f.Add([]byte(bad.content))
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		dir := write(t, map[string]string{"root_agent.yaml": string(content)})
		def, err := yaml.LoadApp(dir, options())
		if err == nil {
			require.NoError(t, def.Validate())
			_, err = def.Hash()
			require.NoError(t, err)
			return
		}
		require.Nil(t, def)
		var typed *yaml.Error
		require.ErrorAs(t, err, &typed)
	})
}
