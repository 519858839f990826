package routes

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// module begins the import paths of this module's packages.
const module = "tarry/"

// Source is the module's source. Not safe for concurrent use.
type Source struct {
	root     string
	packages map[string]*source
}

// source is one package.
type source struct {
	files  map[string]*ast.File // by name, tests left out
	consts map[string]constant.Value
}

// In is the module whose root folder is given.
func In(root string) *Source { return &Source{root: root, packages: map[string]*source{}} }

// Constant is the value of a package's constant, as an int64 or a string. folder is below the root, such as "server/web".
func (s *Source) Constant(folder, name string) (any, error) {
	p, err := s.parse(folder)
	if err != nil {
		return nil, err
	}
	v, ok := p.consts[name]
	if !ok {
		return nil, fmt.Errorf("package %s has no constant %s that can be read", folder, name)
	}
	if n, ok := constant.Int64Val(constant.ToInt(v)); ok && v.Kind() != constant.String {
		return n, nil
	}
	if v.Kind() != constant.String {
		return nil, fmt.Errorf("constant %s of package %s is neither number nor text", name, folder)
	}
	return constant.StringVal(v), nil
}

func (s *Source) parse(folder string) (*source, error) {
	if p, ok := s.packages[folder]; ok {
		return p, nil
	}
	names, err := filepath.Glob(filepath.Join(s.root, filepath.FromSlash(folder), "*.go"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no Go files in %s", folder)
	}
	p := &source{files: map[string]*ast.File{}, consts: map[string]constant.Value{}}
	s.packages[folder] = p
	slices.Sort(names)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse: %w", err)
		}
		p.files[folder+"/"+filepath.Base(name)] = file
	}
	// Again until nothing new is found: a constant may stand in a file before those that it is made of.
	for known := -1; known < len(p.consts); {
		known = len(p.consts)
		for _, file := range p.files {
			s.constants(p, file)
		}
	}
	return p, nil
}

// constants takes up the constants of a file, those within functions too. A name that is used for two things counts as one that
// cannot be read.
func (s *Source) constants(p *source, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, value := range spec.Values {
			v := s.value(p, file, value)
			if v == nil || i >= len(spec.Names) {
				continue
			}
			name := spec.Names[i].Name
			if old, ok := p.consts[name]; ok && (old.Kind() != v.Kind() || !constant.Compare(old, token.EQL, v)) {
				v = constant.MakeUnknown()
			}
			p.consts[name] = v
		}
		return true
	})
}

// value evaluates an expression of constants; nil where that is not possible.
func (s *Source) value(p *source, file *ast.File, e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.Ident:
		return p.consts[e.Name]
	case *ast.ParenExpr:
		return s.value(p, file, e.X)
	case *ast.SelectorExpr:
		x, ok := e.X.(*ast.Ident)
		if !ok {
			return nil
		}
		if of := s.imported(file, x.Name); of != nil {
			return of.consts[e.Sel.Name]
		}
	case *ast.BinaryExpr:
		x, y := s.value(p, file, e.X), s.value(p, file, e.Y)
		switch {
		case x == nil || y == nil || x.Kind() == constant.Unknown || y.Kind() == constant.Unknown || (x.Kind() == constant.String) != (y.Kind() == constant.String):
			return nil
		case e.Op == token.SHL:
			if n, ok := constant.Uint64Val(y); ok {
				return constant.Shift(x, e.Op, uint(n))
			}
		case e.Op == token.QUO && x.Kind() == constant.Int && y.Kind() == constant.Int && constant.Sign(y) != 0:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y) // of integers
		case e.Op == token.ADD, e.Op == token.MUL && x.Kind() == constant.Int:
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}

// imported finds a package of this module that a file imports.
func (s *Source) imported(file *ast.File, name string) *source {
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		folder, ours := strings.CutPrefix(path, module)
		if err != nil || !ours || name != path[strings.LastIndex(path, "/")+1:] && (spec.Name == nil || spec.Name.Name != name) {
			continue
		}
		if p, err := s.parse(folder); err == nil {
			return p
		}
	}
	return nil
}
