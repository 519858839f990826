package routes

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"regexp"
	"slices"
)

// Route is one call that mounts a handler.
type Route struct {
	// Pattern is as [http.ServeMux] takes it, such as "GET /runs".
	Pattern string
	// File is where it is mounted, below the module's root.
	File string
	// Mux is the name of the variable that it is mounted on.
	Mux string
}

// All are the routes that the packages in the given folders mount, sorted by pattern. A pattern that is not made of constants is
// an error: it would be missing.
func (s *Source) All(folders ...string) ([]Route, error) {
	var out []Route
	for _, folder := range folders {
		p, err := s.parse(folder)
		if err != nil {
			return nil, err
		}
		for name, file := range p.files {
			found, err := s.mounted(p, name, file)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	slices.SortFunc(out, func(a, b Route) int { return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(a.File, b.File)) })
	return slices.Compact(out), nil
}

func (s *Source) mounted(p *source, name string, file *ast.File) (out []Route, err error) {
	pattern := regexp.MustCompile(`^([A-Z]+ )?/`)
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || len(call.Args) < 2 || method.Sel.Name != "HandleFunc" && method.Sel.Name != "Handle" {
			return true
		}
		text := s.value(p, file, call.Args[0])
		if text == nil || text.Kind() != constant.String {
			err = fmt.Errorf("%s mounts a pattern that is not made of constants; write it so that it can be read", name)
			return false
		}
		if mux, ok := method.X.(*ast.Ident); ok && pattern.MatchString(constant.StringVal(text)) {
			out = append(out, Route{Pattern: constant.StringVal(text), File: name, Mux: mux.Name})
		}
		return true
	})
	return out, err
}
