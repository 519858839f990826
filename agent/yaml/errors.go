package yaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Error is one thing that is wrong with a file. [Load] and [LoadApp] join all of them.
type Error struct {
	// File is the path as the caller would open it.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field is the path of the key, such as tools[0].args.timeout. Empty means the file as a whole.
	Field string
	// Problem names the value, unless it may be a secret, and the mend.
	Problem string

	cause error
}

// Error implements error: file:line: field: problem.
func (e *Error) Error() string {
	out := e.File
	if e.Line > 0 {
		out = fmt.Sprintf("%s:%d", out, e.Line)
	}
	if e.Field != "" {
		out += ": " + e.Field
	}
	return out + ": " + e.Problem
}

// Unwrap returns the error of the file system, if one is the cause.
func (e *Error) Unwrap() error { return e.cause }

// problems collects what is wrong with all files of one call.
type problems struct {
	files []string // in order of reading
	errs  []*Error
}

func (p *problems) reads(file string) {
	if !slices.Contains(p.files, file) {
		p.files = append(p.files, file)
	}
}

func (p *problems) add(e *Error) {
	p.reads(e.File)
	p.errs = append(p.errs, e)
}

// join sorts by file in order of reading, then by line.
func (p *problems) join() error {
	slices.SortStableFunc(p.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(slices.Index(p.files, a.File), slices.Index(p.files, b.File)), cmp.Compare(a.Line, b.Line))
	})
	errs := make([]error, len(p.errs))
	for i, e := range p.errs {
		errs[i] = e
	}
	return errors.Join(errs...)
}
