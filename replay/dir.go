package replay

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// Checked is one history of several.
type Checked struct {
	// Name is the path of its file, or the id of its workflow.
	Name string
	Result
	// Err is nil if it fits; else it is what [Replayer.History] or reading it said.
	Err error
}

// Differs says that the history was checked, and that it does not fit.
func (c Checked) Differs() bool { return errors.Is(c.Err, ErrMismatch) }

// Summary is what came of several histories, by their names.
type Summary []Checked

// Fit counts those that fit, Differ those that do not, and Unusable those that could not be checked.
func (s Summary) Fit() int { return s.count(func(c Checked) bool { return c.Err == nil }) }

// Differ counts those that do not fit.
func (s Summary) Differ() int { return s.count(Checked.Differs) }

// Unusable counts those that could not be checked.
func (s Summary) Unusable() int { return len(s) - s.Fit() - s.Differ() }

func (s Summary) count(is func(Checked) bool) (n int) {
	for _, c := range s {
		if is(c) {
			n++
		}
	}
	return n
}

// Err joins the errors, each with the name of its history; nil if all fit.
func (s Summary) Err() error {
	var all []error
	for _, c := range s {
		if c.Err != nil {
			all = append(all, fmt.Errorf("%s: %w", c.Name, c.Err))
		}
	}
	return errors.Join(all...)
}

// String counts.
func (s Summary) String() string {
	parts := []string{fmt.Sprintf("%d of %d fit", s.Fit(), len(s))}
	if n := s.Differ(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d differ", n))
	}
	if n := s.Unusable(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be checked", n))
	}
	return strings.Join(parts, ", ")
}

// Dir replays every *.json below dir, in the order of their paths. It returns an error if dir cannot be read or holds none:
// a check of nothing must not pass. What came of the histories is in the summary, and in its Err.
func (p Replayer) Dir(ctx context.Context, dir string) (Summary, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Ext(path) == ".json" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read histories: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: %s holds no *.json", ErrHistory, dir)
	}
	slices.Sort(files)
	var out Summary
	for _, file := range files {
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("replay %s: %w", dir, err)
		}
		r, err := p.file(ctx, file)
		out = append(out, Checked{Name: file, Result: r, Err: err})
	}
	return out, nil
}
