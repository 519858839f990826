package yaml

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tarry/agent"
)

// maxFile bounds one file, in bytes.
const maxFile = 1 << 20

// loader reads one app.
type loader struct {
	folder    *folder
	opts      Options
	problems  *problems
	loaded    []loadedFile
	documents map[*agent.Agent]*document
}

type loadedFile struct {
	info fs.FileInfo
	name string
	open bool // its sub-agents are being read
}

func (l *loader) app(dir string) *agent.Definition {
	def := &agent.Definition{App: l.folder.title(dir)}
	rel := path.Join(dir, RootFile)
	info, err := l.folder.root.Stat(rel)
	if err != nil {
		l.problems.add(&Error{File: l.folder.name(rel), Problem: "the root agent cannot be read: " + reason(err), cause: err})
		return def
	}
	if !info.Mode().IsRegular() {
		// A pipe would block the reader for ever.
		l.problems.add(&Error{File: l.folder.name(rel), Problem: "the root agent is not a file"})
		return def
	}
	def.Root = l.file(rel, info)
	if def.Root == nil {
		return def
	}
	nameToolsets(def)
	l.validate(def, l.folder.name(rel))
	return def
}

// validate adds what the definition as a whole has against it.
func (l *loader) validate(def *agent.Definition, rootFile string) {
	for _, err := range unjoin(def.Validate()) {
		var field *agent.FieldError
		if !errors.As(err, &field) {
			l.problems.add(&Error{File: rootFile, Problem: err.Error(), cause: err})
			continue
		}
		doc, known := l.documents[field.At]
		switch {
		case !known && field.Field == "app":
			l.problems.add(&Error{File: rootFile, Problem: "the folder's name is the app's: " + field.Problem + "; rename the folder"})
		case !known:
			l.problems.add(&Error{File: rootFile, Field: field.Field, Problem: field.Problem})
		default:
			if e := doc.resolve(field, 1); e != nil {
				l.problems.add(e)
			}
		}
	}
}

// unjoin takes apart what errors.Join put together.
func unjoin(err error) []error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	if err != nil {
		return []error{err}
	}
	return nil
}

// file reads the agent of one file and those below it; nil if there is none.
func (l *loader) file(rel string, info fs.FileInfo) *agent.Agent {
	name := l.folder.name(rel)
	l.problems.reads(name)
	data, err := l.read(rel)
	if err != nil {
		l.problems.add(&Error{File: name, Problem: reason(err), cause: err})
		return nil
	}
	v, ok := parse(name, data, l.problems)
	if !ok {
		return nil
	}
	l.loaded = append(l.loaded, loadedFile{info: info, name: name, open: true})
	index := len(l.loaded) - 1
	a := l.agent(v, path.Dir(rel))
	l.loaded[index].open = false
	v.doc.references(v)
	l.documents[a] = v.doc
	return a
}

func (l *loader) read(rel string) ([]byte, error) {
	f, err := l.folder.root.Open(rel)
	if err != nil {
		return nil, fmt.Errorf("open agent file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read agent file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("larger than %d bytes; split the agent or shorten its instruction", maxFile)
	}
	return data, nil
}

// subAgent reads the file that a config_path names, relative to the folder of the file it stands in.
func (l *loader) subAgent(v value, dir string) *agent.Agent {
	configPath := v.text()
	switch {
	case configPath == "":
		if !slices.Contains(v.doc.bad, v.path) {
			v.fail("names no file")
		}
		return nil
	case path.IsAbs(configPath) || filepath.IsAbs(configPath):
		v.fail("%s is absolute; write it relative to this file", v.shown())
		return nil
	case strings.Contains(configPath, `\`):
		v.fail("%s contains a backslash; write / between folders", v.shown())
		return nil
	case slices.Contains(strings.Split(configPath, "/"), ".."):
		v.fail("%s contains ..; a sub-agent's file lies beside this one or below it", v.shown())
		return nil
	}
	rel := path.Join(dir, configPath)
	info, err := l.folder.root.Stat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.fail("there is no file %s; paths are relative to this file", v.shown())
		return nil
	case err != nil:
		v.fail("%s cannot be read: %s; it must lie in the agents folder", v.shown(), reason(err))
		return nil
	}
	if !info.Mode().IsRegular() {
		v.fail("%s is not a file", v.shown())
		return nil
	}
	for _, f := range l.loaded {
		if !os.SameFile(f.info, info) {
			continue
		}
		if f.open {
			v.fail("%s is a circle: %s is above this agent; an agent cannot be its own sub-agent", v.shown(), f.name)
		} else {
			v.fail("%s is used twice in this app; copy the file and give the copy's agent another name", v.shown())
		}
		return nil
	}
	return l.file(rel, info)
}
