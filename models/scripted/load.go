package scripted

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"tarry/models"
)

const maxScript = 1 << 20

// Config says where scripts are.
type Config struct {
	// Dir is the folder of the script files; nothing outside it is read.
	Dir string
	// Journal, if not empty, is a file to which each call appends one JSON line; see [Record].
	Journal string
	// OnCall, if not nil, observes each call; see [OnCall].
	OnCall func(Record)
}

// Factory makes models for a registry. The name is a file in Config.Dir, with or without its ending (.yaml, .yml,
// .json): "scripted/demo" follows demo.yaml. The file is read when the model is made.
func Factory(cfg Config) models.Factory {
	return func(_ context.Context, name string) (models.Model, error) {
		script, err := open(cfg.Dir, name)
		if err != nil {
			return nil, err
		}
		m := &Model{script: script, cfg: options{journal: cfg.Journal, onCall: cfg.OnCall}}
		return m, nil
	}
}

// Load reads and checks a script file. Its errors, joined, are of type [*ScriptError].
func Load(path string) (Script, error) {
	file, err := os.Open(path)
	if err != nil {
		return Script{}, fmt.Errorf("open script: %w", err)
	}
	defer func() { _ = file.Close() }()
	return read(file, path)
}

// Parse reads and checks a script. name stands in errors and as the script's name.
func Parse(name string, source []byte) (Script, error) {
	if len(source) > maxScript {
		return Script{}, fmt.Errorf("script %s: longer than %d bytes", name, maxScript)
	}
	return decode(name, source)
}

func open(dir, name string) (Script, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Script{}, fmt.Errorf("open script folder: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, ending := range []string{"", ".yaml", ".yml", ".json"} {
		file, err := root.Open(name + ending)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Script{}, fmt.Errorf("open script: %w", err)
		}
		info, err := file.Stat()
		if err == nil && info.IsDir() {
			_ = file.Close()
			continue
		}
		script, err := read(file, name+ending)
		_ = file.Close()
		return script, err
	}
	return Script{}, fmt.Errorf("script %q: no such file, also not as .yaml, .yml or .json: %w", name, fs.ErrNotExist)
}

func read(file io.Reader, name string) (Script, error) {
	source, err := io.ReadAll(io.LimitReader(file, maxScript+1))
	if err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	return Parse(name, source)
}
