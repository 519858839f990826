package openapi

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	"go.yaml.in/yaml/v4"
)

//go:embed api/*.yaml
var files embed.FS

// anchors is the key of a file for what its other parts refer to by YAML's aliases; it is no part of the document.
const anchors = "anchors"

// Document returns the document as JSON.
func Document() ([]byte, error) {
	names, err := fs.Glob(files, "api/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list parts: %w", err)
	}
	all := map[string]any{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read part: %w", err)
		}
		var part map[string]any
		if err := yaml.Unmarshal(text, &part); err != nil {
			return nil, fmt.Errorf("parse %s: %w", path.Base(name), err)
		}
		delete(part, anchors)
		if err := merge(all, part, path.Base(name)); err != nil {
			return nil, err
		}
	}
	body, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encode document: %w", err)
	}
	return body, nil
}

// merge adds from to into. Nothing is said twice: of two texts one would be silently lost.
func merge(into, from map[string]any, where string) error {
	for key, value := range from {
		old, ok := into[key]
		if !ok {
			into[key] = value
			continue
		}
		first, isMap := old.(map[string]any)
		second, both := value.(map[string]any)
		if !isMap || !both {
			return fmt.Errorf("%s: %s stands in another file as well", where, key)
		}
		if err := merge(first, second, where+": "+key); err != nil {
			return err
		}
	}
	return nil
}
