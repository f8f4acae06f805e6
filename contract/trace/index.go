package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// An index knows where the symbols and the tests of each part are.
type index struct {
	symbols map[part]map[string]symbol
	tests   map[part]map[string]string // the file of each, seen from the root
}

// A symbol is a declaration, or a field of one, without its comment.
type symbol struct {
	file       string // seen from the root
	source     []byte // of the whole file
	start, end int
}

// changed is the source of the file with another text in the symbol.
func (s symbol) changed(old, new string) ([]byte, error) {
	text := string(s.source[s.start:s.end])
	if n := strings.Count(text, old); n != 1 {
		return nil, fmt.Errorf("%q is in it %d times, not once", old, n)
	}
	if old == new {
		return nil, errors.New("the change changes nothing")
	}
	text = strings.Replace(text, old, new, 1)
	return []byte(string(s.source[:s.start]) + text + string(s.source[s.end:])), nil
}

func newIndex(root string) (*index, error) {
	x := &index{map[part]map[string]symbol{}, map[part]map[string]string{}}
	for _, p := range parts() {
		x.symbols[p], x.tests[p] = map[string]symbol{}, map[string]string{}
		paths, err := filepath.Glob(filepath.Join(root, string(p), "*.go"))
		if err != nil {
			return nil, err
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("there is no Go file in %s: see -root", filepath.Join(root, string(p)))
		}
		for _, path := range paths {
			if err := x.add(p, filepath.Join(string(p), filepath.Base(path)), path); err != nil {
				return nil, err
			}
		}
	}
	return x, nil
}

// add notes what a file declares.
func (x *index) add(p part, file, path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	isTest := strings.HasSuffix(file, "_test.go")
	declared(parsed, func(name string, node ast.Node) {
		switch {
		case !isTest:
			x.symbols[p][name] = symbol{file, source, files.Position(node.Pos()).Offset, files.Position(node.End()).Offset}
		case strings.HasPrefix(name, "Test"):
			x.tests[p][name] = file
		}
	})
	return nil
}

// declared calls found for every declaration of a file, and for every field of a
// struct.
func declared(file *ast.File, found func(name string, node ast.Node)) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			found(receiver(d)+d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				declaredIn(spec, found)
			}
		}
	}
}

func declaredIn(spec ast.Spec, found func(name string, node ast.Node)) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			found(name.Name, s)
		}
	case *ast.TypeSpec:
		found(s.Name.Name, s)
		fields, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range fields.Fields.List {
			for _, name := range field.Names {
				found(s.Name.Name+"."+name.Name, field)
			}
		}
	}
}

// receiver is "Type." for a method, and nothing for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	typ := f.Recv.List[0].Type
	if pointer, ok := typ.(*ast.StarExpr); ok {
		typ = pointer.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	if name, ok := typ.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// check says everything that is wrong with the statements.
func (x *index) check(sections []section) error {
	var wrong []error
	for i, s := range sections {
		for j, statement := range s.statements {
			if len(statement.claims) == 0 {
				wrong = append(wrong, fmt.Errorf("%d.%d: %q has no code and no test", i+1, j+1, statement.text))
			}
			for _, c := range statement.claims {
				if err := x.checkClaim(c); err != nil {
					wrong = append(wrong, fmt.Errorf("%d.%d: %s: %w", i+1, j+1, c.symbol, err))
				}
			}
		}
	}
	return errors.Join(wrong...)
}

func (x *index) checkClaim(c claim) error {
	symbol, ok := x.symbols[c.part][c.symbol]
	if !ok {
		return fmt.Errorf("is not declared in %s", c.part)
	}
	if _, err := symbol.changed(c.old, c.new); err != nil {
		return err
	}
	if len(c.tests) == 0 {
		return errors.New("no test is named")
	}
	for _, test := range c.tests {
		name, _, _ := strings.Cut(test, "/")
		if x.tests[c.part][name] == "" {
			return fmt.Errorf("there is no %s in %s", name, c.part)
		}
	}
	return nil
}
