package webui

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// Package names where builds come from, for messages.
const Package = "@google/adk-devtools"

const (
	index = "index.html"
	// Bounds on a build. The published ones have a hundred files and 9 MB; a folder beyond these is no build.
	maxFiles = 2000
	maxBytes = 64 << 20
)

// Build is a build of the UI, read once: what changes in the folder later is not served. Safe for concurrent use.
type Build struct {
	files map[string]file
	// policy is the Content-Security-Policy of everything in it.
	policy string
}

type file struct {
	body []byte
	tag  string
}

// Load reads a build. Symbolic links in the folder are not followed, names that begin with a dot are left out. An error says what
// the folder lacks.
func Load(folder string) (*Build, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("%q cannot be read as a folder: %w", folder, err)
	}
	defer func() { _ = root.Close() }() // was only read
	b := &Build{files: map[string]file{}}
	if err := b.read(root); err != nil {
		return nil, fmt.Errorf("%q: %w", folder, err)
	}
	page, ok := b.files[index]
	switch {
	case !ok:
		return nil, fmt.Errorf("%q holds no index.html; %s", folder, mend(folder))
	case !bytes.Contains(page.body, []byte("<app-root")):
		return nil, fmt.Errorf("%q: its index.html is not the ADK web UI's; %s", folder, mend(folder))
	case !slices.ContainsFunc(names(b.files), func(name string) bool { return strings.HasPrefix(name, "main") && path.Ext(name) == ".js" }):
		return nil, fmt.Errorf("%q holds no main….js, so it is not a whole build; %s", folder, mend(folder))
	}
	b.policy = policy(page.body)
	return b, nil
}

// mend says which folder to name, or which one lies below.
func mend(folder string) string {
	for _, below := range []string{"dist/browser", "browser", "package/dist/browser", "node_modules/" + Package + "/dist/browser"} {
		at := filepath.Join(folder, filepath.FromSlash(below))
		if _, err := os.Stat(filepath.Join(at, index)); err == nil {
			return fmt.Sprintf("name %q", at)
		}
	}
	return "name the folder dist/browser of the npm package " + Package
}

func (b *Build) read(root *os.Root) error {
	var size int64
	err := fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
			return nil
		case hidden(entry.Name()):
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !entry.Type().IsRegular(): // a link may lead anywhere
			return nil
		}
		body, err := readFile(root, name, maxBytes-size)
		if err != nil {
			return err
		}
		if size += int64(len(body)); len(b.files) >= maxFiles {
			return errTooLarge
		}
		sum := sha256.Sum256(body)
		b.files[name] = file{body, `"` + hex.EncodeToString(sum[:16]) + `"`}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read build: %w", err)
	}
	return nil
}

var errTooLarge = fmt.Errorf("more than %d files or %d bytes lie there; name the folder dist/browser of the npm package %s", maxFiles, maxBytes, Package)

func readFile(root *os.Root, name string, most int64) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was done
	}
	defer func() { _ = f.Close() }() // was only read
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("%s is no plain file", name), err)
	}
	body, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(body)) > most {
		return nil, errTooLarge
	}
	return body, err //nolint:wrapcheck // the caller says what was done
}

func hidden(name string) bool { return strings.HasPrefix(name, ".") }

func names(files map[string]file) (out []string) {
	for name := range files {
		out = append(out, name)
	}
	return out
}

// policy is as strict as the build allows. It has inline styles, a font from a network host without which icons are words, a
// renderer of graphs in WebAssembly, and in its page a handler that turns the style sheet on, which is allowed by its hash. No other
// host is reached: what a model writes cannot make a browser tell anybody by loading an image.
func policy(page []byte) string {
	scripts := "script-src 'self' 'wasm-unsafe-eval'"
	if hashes := inline(page); len(hashes) > 0 {
		scripts += " 'unsafe-hashes' " + strings.Join(hashes, " ")
	}
	return strings.Join([]string{
		"default-src 'none'", scripts, "style-src 'self' 'unsafe-inline' https://fonts.googleapis.com", "font-src 'self' data: https://fonts.gstatic.com",
		"img-src 'self' data: blob:", "media-src 'self' data: blob:", "connect-src 'self'", "worker-src 'self'",
		"base-uri 'self'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// inline returns the hashes of a page's scripts and event handlers (CSP level 3, section 6.7.2).
func inline(page []byte) (hashes []string) {
	add := func(script string) {
		sum := sha256.Sum256([]byte(script))
		if hash := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !slices.Contains(hashes, hash) {
			hashes = append(hashes, hash)
		}
	}
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for {
		kind := tokens.Next()
		if kind == html.ErrorToken {
			return hashes
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag, external := tokens.Token(), false
		for _, a := range tag.Attr {
			external = external || a.Key == "src"
			if strings.HasPrefix(a.Key, "on") {
				add(a.Val)
			}
		}
		if tag.Data == "script" && !external && tokens.Next() == html.TextToken {
			add(string(tokens.Raw()))
		}
	}
}
