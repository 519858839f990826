package yaml_test

import (
	"fmt"
	"os"
	"path/filepath"

	"tarry/agent/yaml"
)

func Example() {
	dir, err := os.MkdirTemp("", "agents")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	app := filepath.Join(dir, "assistant")
	content := "name: assistant\nmodel: ${var:MODEL}\ninstruction: Answer questions.\n"
	if err := os.Mkdir(app, 0o750); err != nil {
		fmt.Println(err)
		return
	}
	if err := os.WriteFile(filepath.Join(app, yaml.RootFile), []byte(content), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	apps, err := yaml.Load(dir, yaml.Options{Vars: map[string]string{"MODEL": "gemini/gemini-2.5-flash"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(apps[0].App, apps[0].Root.Kind, apps[0].Root.Model)
	// Output: assistant LlmAgent gemini/gemini-2.5-flash
}
