package yaml

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tarry/agent"
)

// RootFile is the name that ADK gives to the file of an app's root agent.
const RootFile = "root_agent.yaml"

// Options say what files may use. The zero value allows neither Go tools nor named schemas nor stdio
// servers nor variables.
type Options struct {
	// Functions are the names of the Go tools that the program registered, with dots as tools are written in files.
	Functions []string
	// Schemas are the JSON Schemas that output_schema and input_schema may name. They become part of the definition.
	Schemas map[string]json.RawMessage
	// Callbacks are the names of the Go callbacks that the program registered.
	Callbacks map[agent.CallbackPoint][]string
	// CustomAgents are the names of the custom agents that the program registered; agent_class may be one of them.
	CustomAgents []string
	// AllowStdio lets files name commands that are started as MCP servers. Who can write such a file can run anything
	// on the machine.
	AllowStdio bool
	// Vars replace ${var:NAME} in url and model. They end up in the stored definition, so they must not be secret.
	Vars map[string]string
}

// Load reads a folder of apps: each folder in it that holds a [RootFile] is one, named after the folder. A dir that
// holds a [RootFile] itself is one app. The definitions come back in the order of their names and are valid; otherwise
// the error joins an [*Error] for everything that is wrong with any of the files, and there are no definitions.
func Load(dir string, opts Options) ([]*agent.Definition, error) {
	return load(dir, opts, true)
}

// LoadApp reads the one app whose [RootFile] lies in dir. The app is named after the folder. Errors are as in [Load].
func LoadApp(dir string, opts Options) (*agent.Definition, error) {
	defs, err := load(dir, opts, false)
	if err != nil {
		return nil, err
	}
	return defs[0], nil
}

func load(dir string, opts Options, many bool) ([]*agent.Definition, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer f.root.Close()
	p := &problems{}
	apps := []string{"."}
	if many && !f.has(RootFile) {
		if apps, err = f.apps(p); err != nil {
			return nil, err
		}
	}
	defs := make([]*agent.Definition, 0, len(apps))
	for _, app := range apps {
		l := &loader{folder: f, opts: opts, problems: p, documents: map[*agent.Agent]*document{}}
		defs = append(defs, l.app(app))
	}
	if len(p.errs) > 0 {
		return nil, p.join()
	}
	return defs, nil
}

// folder is the agents folder. The root keeps every path below it, whatever links lie there.
type folder struct {
	dir  string
	root *os.Root
}

func openFolder(dir string) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, &Error{File: dir, Problem: "the agents folder cannot be opened: " + reason(err), cause: err}
	}
	return &folder{dir: dir, root: root}, nil
}

func (f *folder) name(rel string) string { return filepath.Join(f.dir, filepath.FromSlash(rel)) }

func (f *folder) has(rel string) bool {
	_, err := f.root.Stat(rel)
	return err == nil
}

// apps lists the folders that hold a root agent.
func (f *folder) apps(p *problems) ([]string, error) {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return nil, &Error{File: f.dir, Problem: "the agents folder cannot be read: " + reason(err), cause: err}
	}
	var apps []string
	for _, entry := range entries {
		// Mounted volumes keep their own bookkeeping in folders such as ..data.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		file := path.Join(entry.Name(), RootFile)
		switch {
		case f.has(file):
			apps = append(apps, entry.Name())
		case exists(f.name(file)):
			p.add(&Error{File: f.name(file), Problem: "a link leads out of the agents folder; copy the files into it"})
		}
	}
	if len(apps) == 0 && len(p.errs) == 0 {
		return nil, &Error{File: f.dir, Problem: "no app here: neither " + RootFile + " nor a folder with one"}
	}
	return apps, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// title is the name of an app's folder.
func (f *folder) title(app string) string {
	if app != "." {
		return app
	}
	abs, err := filepath.Abs(f.dir)
	if err != nil {
		abs = f.dir
	}
	return filepath.Base(abs)
}

// reason is an error of the file system without the path, which the caller names anyway.
func reason(err error) string {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err.Error()
	}
	return fmt.Sprint(err)
}
