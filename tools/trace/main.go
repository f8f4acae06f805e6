// Command trace checks that a test cites every statement of docs/interface.md, that no file names
// one which is not there, and that every exported identifier has a comment; -print prints each
// statement with its code and its tests. A citation is a line of a comment that begins with
// numbers of statements and ends there or goes on after a colon. The comment is on a test, fuzz
// target, example or table, or on a line of one.
package main

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	numbers   = regexp.MustCompile(`\bI-[0-9]+\b`)
	citation  = regexp.MustCompile(`(?m)^I-[0-9]+(, I-[0-9]+)*([,:]|$)`)
	exported  = regexp.MustCompile(`^[A-Z]\w*(\.[A-Z]\w*)?$`)
	test      = regexp.MustCompile(`^(Test|Fuzz|Example)`)
	statement = regexp.MustCompile(`(?m)^##+ (.+)$|^- <a id="i-([0-9]+)"></a>\*\*(I-[0-9]+)\*\* \(\*(documented|contradictory|not stated)\*; (.+?)\): (.+)$`)
)

func main() {
	root := flag.String("root", "..", "the `directory` of the repository")
	printed := flag.Bool("print", false, "print each statement with its code and its tests")
	flag.Parse()
	table, err := run(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if *printed {
		fmt.Print(table)
	}
}

// run returns the table of the statements, or what is wrong with them.
func run(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "interface.md"))
	if err != nil {
		return "", err
	}
	r := repository{root: root, code: map[string]string{}, tests: map[string][]string{}, named: map[string]string{}}
	if err := filepath.WalkDir(root, r.visit); err != nil {
		return "", err
	}
	table := r.render(strings.ReplaceAll(string(text), "\n  ", " "))
	return table, errors.Join(r.wrong...)
}

// A repository is what its files declare and cite.
type repository struct {
	root  string
	code  map[string]string   // the file of an exported name of the root; a member is Type.Name
	tests map[string][]string // the tests that cite a number, with their files
	named map[string]string   // a file that has a number
	wrong []error
}

func (r *repository) fail(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

func (r *repository) visit(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name, extension := d.Name(), filepath.Ext(path)
	switch {
	case d.IsDir() && path != r.root && (name[0] == '.' || name == "node_modules" || name == "testdata"):
		return filepath.SkipDir
	case d.IsDir() || extension != ".go" && extension != ".md" && extension != ".yaml":
		return nil
	}
	text, err := os.ReadFile(path)
	file, _ := filepath.Rel(r.root, path) // path begins with root
	for _, number := range numbers.FindAllString(string(text), -1) {
		r.named[number] = file
	}
	if err != nil || extension != ".go" {
		return err
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var all []declaration
	for _, decl := range parsed.Decls {
		all = append(all, declared(decl)...)
	}
	if strings.HasSuffix(name, "_test.go") {
		r.citations(file, parsed.Comments, all)
	} else if !strings.Contains("/"+file, "/internal/") {
		r.identifiers(file, all)
	}
	return nil
}

// citations collects the statements that the tests and tables of a file cite.
func (r *repository) citations(file string, comments []*ast.CommentGroup, all []declaration) {
	for _, comment := range comments {
		at := slices.IndexFunc(all, func(d declaration) bool { return d.from <= comment.Pos() && comment.Pos() <= d.to })
		for _, number := range numbers.FindAllString(strings.Join(citation.FindAllString(comment.Text(), -1), " "), -1) {
			if at < 0 || all[at].isFunc && !test.MatchString(all[at].name) {
				r.fail("%s: %s is cited outside of a test", file, number)
				continue
			}
			r.tests[number] = slices.Compact(append(r.tests[number], file+": "+all[at].name))
		}
	}
}

// identifiers collects the exported names of a file, and those without a comment.
func (r *repository) identifiers(file string, all []declaration) {
	for _, d := range all {
		if !exported.MatchString(d.name) {
			continue
		}
		if filepath.Dir(file) == "." {
			r.code[d.name] = file
		}
		if !d.documented {
			r.fail("%s: %s has no comment", file, d.name)
		}
	}
}

// A declaration is a name, from its comment to its end.
type declaration struct {
	name               string
	isFunc, documented bool
	from, to           token.Pos
}

// declared returns the names in a declaration, each before those within it. A comment
// on a group is not one on its members.
func declared(decl ast.Decl) (all []declaration) {
	add := func(n ast.Node, name string, comments ...*ast.CommentGroup) {
		d := declaration{name: name, from: n.Pos(), to: n.End()}
		for _, c := range comments {
			if c != nil {
				d.documented, d.from, d.to = true, min(d.from, c.Pos()), max(d.to, c.End())
			}
		}
		all = append(all, d)
	}
	if f, ok := decl.(*ast.FuncDecl); ok {
		of := ""
		if f.Recv != nil {
			of, _, _ = strings.Cut(strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*"), "[")
		}
		add(f, strings.TrimPrefix(of+"."+f.Name.Name, "."), f.Doc)
		all[0].isFunc = true
		return all
	}
	group := decl.(*ast.GenDecl) // what else is declared does not parse
	if group.Lparen.IsValid() {
		group.Doc = nil
	}
	for _, spec := range group.Specs {
		if values, ok := spec.(*ast.ValueSpec); ok {
			for _, id := range values.Names {
				add(spec, id.Name, values.Doc, values.Comment, group.Doc)
			}
		}
		if of, ok := spec.(*ast.TypeSpec); ok {
			add(spec, of.Name.Name, of.Doc, of.Comment, group.Doc)
			ast.Inspect(of.Type, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				for i := 0; ok && i < len(field.Names); i++ {
					add(field, of.Name.Name+"."+field.Names[i].Name, field.Doc, field.Comment)
				}
				return !ok
			})
		}
	}
	return all
}

// render returns the table, and collects what is wrong with the statements.
func (r *repository) render(text string) string {
	out, known := "", map[string]bool{}
	for _, m := range statement.FindAllStringSubmatch(text, -1) {
		title, anchor, number, mark, code, sentence := m[1], m[2], m[3], m[4], m[5], m[6]
		if title != "" {
			out += "\n" + title + "\n"
			continue
		}
		if known[number] || number != "I-"+anchor || r.tests[number] == nil {
			r.fail("docs/interface.md: %s has no test, or is there twice, or under another anchor", number)
		}
		known[number] = true
		out += fmt.Sprintf("\n%s (%s): %s\n", number, mark, sentence)
		for name := range strings.SplitSeq(strings.ReplaceAll(code, "`", ""), ", ") {
			if r.code[name] == "" {
				r.fail("docs/interface.md: %s: there is no %s", number, name)
			}
			out += fmt.Sprintf("  code  %s: %s\n", r.code[name], name)
		}
		for _, cited := range r.tests[number] {
			out += "  test  " + cited + "\n"
		}
	}
	if n := strings.Count(text, `<a id="i-`); n == 0 || n != len(known) {
		r.fail("docs/interface.md: of %d statements, %d can be read", n, len(known))
	}
	for _, number := range slices.Sorted(maps.Keys(r.named)) {
		if !known[number] {
			r.fail("%s: there is no %s", r.named[number], number)
		}
	}
	return out
}
