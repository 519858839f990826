package webui_test

import (
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"tarry/server/webui"
)

const page = `<!doctype html><base href="./"><link rel="stylesheet" href="./styles-ABCDEFGH.css" media="print" onload="this.media='all'">` +
	`<app-root></app-root><script>start()</script><script src="./main-ABCDEFGH.js" type="module"></script>`

// folder writes files by name; those that end in a slash are folders.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, body := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		if !strings.HasSuffix(name, "/") {
			require.NoError(t, os.WriteFile(path, []byte(body), 0o600))
		}
	}
	return dir
}

// built is what a build looks like.
func built() map[string]string {
	return map[string]string{
		"index.html": page, "main-ABCDEFGH.js": "main()", "styles-ABCDEFGH.css": "body{}", "adk_favicon.svg": "<svg/>",
		"assets/audio-processor.js": "audio()", "assets/config/runtime-config.json": `{"backendUrl":"http://elsewhere.example"}`,
		".version": "1", ".git/config": "[core]", "assets/.env": "KEY=1", "data.bin": "\x00",
	}
}

func TestWhatIsNoBuild(t *testing.T) {
	t.Parallel()
	without := func(name string) map[string]string {
		files := built()
		delete(files, name)
		return files
	}
	other := without("index.html")
	other["index.html"] = "<h1>Hello</h1>"
	below := map[string]string{"package.json": "{}", "dist/browser/index.html": page}
	for name, c := range map[string]struct {
		folder string
		wants  []string
	}{
		"not there":    {filepath.Join(t.TempDir(), "nowhere"), []string{"nowhere", "cannot be read as a folder"}},
		"a file":       {filepath.Join(folder(t, built()), "index.html"), []string{"cannot be read as a folder"}},
		"empty":        {t.TempDir(), []string{"holds no index.html", "name the folder dist/browser of the npm package @google/adk-devtools"}},
		"another page": {folder(t, other), []string{"is not the ADK web UI's"}},
		"half":         {folder(t, without("main-ABCDEFGH.js")), []string{"holds no main"}},
		"the package":  {folder(t, below), []string{"holds no index.html", "name ", filepath.Join("dist", "browser")}},
		"the machine":  {"/proc", []string{"/proc"}},
	} {
		_, err := webui.Load(c.folder)
		for _, want := range c.wants {
			require.ErrorContains(t, err, want, name)
		}
	}
	_, err := webui.Load(folder(t, built()))
	require.NoError(t, err)
}

// A folder that is much too large is refused before it is in memory.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	files := built()
	dir := folder(t, files)
	big, err := os.Create(filepath.Join(dir, "big.js"))
	require.NoError(t, err)
	require.NoError(t, big.Truncate(65<<20))
	require.NoError(t, big.Close())
	_, err = webui.Load(dir)
	require.ErrorContains(t, err, "more than 2000 files or")
}

// sum is a source expression for a script (CSP level 3).
func sum(script string) string {
	out := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(out[:]) + "'"
}
