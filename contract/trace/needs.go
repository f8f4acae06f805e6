package main

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
)

// A graph says which test files of a part need which others to compile. Building
// no more than that is what makes the proof fast.
type graph map[string]map[string]bool

// newGraph reads the test files of a part, but for those of other systems.
func newGraph(root string, p part) (graph, error) {
	paths, err := filepath.Glob(filepath.Join(root, string(p), "*_test.go"))
	if err != nil {
		return nil, err
	}
	seen := func(path string) string { return filepath.Join(string(p), filepath.Base(path)) } // from the root
	all, files := graph{}, token.NewFileSet()
	packages := map[string][]*ast.File{}
	for _, path := range paths {
		built, err := build.Default.MatchFile(filepath.Dir(path), filepath.Base(path))
		if err != nil {
			return nil, err
		}
		if !built {
			continue
		}
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		all[seen(path)] = map[string]bool{}
		packages[file.Name.Name] = append(packages[file.Name.Name], file)
	}
	// What the files import is left out, and so are the errors that this gives: it
	// is no test file.
	config := types.Config{Error: func(error) {}}
	for name, parsed := range packages {
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		_, _ = config.Check(name, files, parsed, info)
		for at, used := range info.Uses {
			if used.Pos().IsValid() {
				from, to := files.Position(at.Pos()).Filename, files.Position(used.Pos()).Filename
				all[seen(from)][seen(to)] = true
			}
		}
	}
	return all, nil
}

// without are the test files that these files can be compiled without.
func (g graph) without(files []string) []string {
	needed := map[string]bool{}
	var need func(file string)
	need = func(file string) {
		if !needed[file] {
			needed[file] = true
			for other := range g[file] {
				need(other)
			}
		}
	}
	for _, file := range files {
		need(file)
	}
	var rest []string
	for file := range g {
		if !needed[file] {
			rest = append(rest, file)
		}
	}
	return rest
}
