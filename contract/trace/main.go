// Trace checks that every statement about the service, in statements.txt, names code
// and tests that exist, and that docs/traceability.md is up to date; -update writes
// that file.
package main

import (
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed statements.txt
var statements string

const heading = `# Every statement has a test

Written by ` + "`bash .ci/trace -update`" + ` from [contract/trace/statements.txt](../contract/trace/statements.txt); do
not edit it. Each statement about the service has the exported code that implements it, in the client and in
the stand-in, and the tests that hold it. Where the interface does not show something, the statement tells
what the client does instead.
`

func main() {
	root := flag.String("root", "..", "the `directory` of the repository")
	update := flag.Bool("update", false, "write docs/traceability.md")
	flag.Parse()
	err := run(*root, statements, *update)
	if flag.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root, statements string, update bool) error {
	code, tests, err := declarations(root)
	if err != nil {
		return err
	}
	table, err := render(statements, code, tests)
	if err != nil {
		return err
	}
	path := filepath.Join(root, "docs", "traceability.md")
	if update {
		return os.WriteFile(path, []byte(table), 0o644)
	}
	written, err := os.ReadFile(path)
	if err == nil && string(written) != table {
		err = errors.New("docs/traceability.md is not up to date: bash .ci/trace -update")
	}
	return err
}

// declared has the files of each name, relative to the root.
type declared map[string][]string

// declarations finds the exported code of the two packages that implement the
// interface, and the tests of all packages of all modules.
func declarations(root string) (code, tests declared, err error) {
	code, tests = declared{}, declared{}
	prefixes := map[string]string{".": "", "gatewaytest": "gatewaytest."}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go"):
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		file, _ := filepath.Rel(root, path) // path begins with root
		prefix, implements := prefixes[filepath.Dir(file)]
		for _, name := range names(parsed) {
			if strings.HasSuffix(file, "_test.go") {
				tests[name] = append(tests[name], file)
			} else if implements && ast.IsExported(name) {
				code[prefix+name] = append(code[prefix+name], file)
			}
		}
		return nil
	})
	return code, tests, err
}

// names returns what a file declares: a method or field as Type.Name.
func names(file *ast.File) (all []string) {
	within := "" // the type that a name belongs to
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			all = append(all, within+id.Name)
		}
	}
	for _, decl := range file.Decls {
		ast.Inspect(decl, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				within = receiver(n)
				add(n.Name)
				return false
			case *ast.ValueSpec:
				within = ""
				add(n.Names...)
				return false
			case *ast.TypeSpec:
				within = ""
				add(n.Name)
				within = n.Name.Name + "."
			case *ast.Field:
				add(n.Names...)
				return false
			}
			return true
		})
	}
	return all
}

// receiver is "Type." for a method and empty for a function.
func receiver(f *ast.FuncDecl) (name string) {
	if f.Recv != nil {
		ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && name == "" {
				name = id.Name + "."
			}
			return name == ""
		})
	}
	return name
}

// render returns the table, or all that is wrong with the statements.
func render(statements string, code, tests declared) (string, error) {
	var out strings.Builder
	var wrong []error
	number := 0
	for line := range strings.Lines(statements) {
		line = strings.TrimSpace(line)
		if title, ok := strings.CutPrefix(line, "## "); ok {
			fmt.Fprintf(&out, "\n## %s\n\n| | statement | code | tests |\n|---|---|---|---|\n", title)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		number++
		id, rest, _ := strings.Cut(line, " ")
		cells := strings.Split(rest, " | ")
		if id != fmt.Sprintf("I-%d", number) || len(cells) != 3 {
			return "", fmt.Errorf("want a line `I-%d text | code | tests`: %s", number, line)
		}
		codeCell, err := links(cells[1], code, "")
		testCell, err2 := links(cells[2], tests, "Test")
		if err := errors.Join(err, err2); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", id, err))
		}
		fmt.Fprintf(&out, "| %s | %s | %s | %s |\n", id, strings.ReplaceAll(cells[0], "<", "&lt;"), codeCell, testCell)
	}
	if number == 0 {
		return "", errors.New("there are no statements")
	}
	return heading + out.String(), errors.Join(wrong...)
}

// links returns names with links to their files. All have the prefix.
func links(list string, in declared, prefix string) (string, error) {
	var cells []string
	for _, name := range strings.Fields(list) {
		if !strings.HasPrefix(name, prefix) || len(in[name]) == 0 {
			return "", fmt.Errorf("there is no %s", name)
		}
		for _, file := range in[name] {
			cells = append(cells, fmt.Sprintf("[`%s`](../%s)", name, filepath.ToSlash(file)))
		}
	}
	if len(cells) == 0 {
		return "", errors.New("it names no code or no test")
	}
	return strings.Join(cells, "<br>"), nil
}
