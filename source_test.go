package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	gopath "path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The rules of docs/architecture.md and CONTRIBUTING.md that can be checked on the
// text of the repository.

const (
	module   = "github.com/cryptogw/gateway"
	internal = module + "/internal/"
)

// rooms are the directories of the packages that the client is made of, of the client itself,
// and of package pricing. internal/testing and internal/testing/documented are for tests, and
// may import the client.
func rooms(t *testing.T) []string {
	t.Helper()
	dirs, err := fs.Glob(os.DirFS("."), "internal/*")
	require.NoError(t, err)
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "internal/testing" || dir == "internal/testing/documented" })
	require.Greater(t, len(dirs), 5)
	return append(dirs, ".", "pricing")
}

// A goFile is a file of Go and what it declares.
type goFile struct {
	*ast.File
	path string
	fset *token.FileSet
}

func parsed(t *testing.T, path string) goFile {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	return goFile{file, path, fset}
}

// code returns the files of a directory that are not tests.
func code(t *testing.T, dir string) []goFile {
	t.Helper()
	paths, err := fs.Glob(os.DirFS("."), gopath.Join(dir, "*.go"))
	require.NoError(t, err)
	var files []goFile
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			files = append(files, parsed(t, path))
		}
	}
	require.NotEmpty(t, files, dir)
	return files
}

// clientCode returns the files that the client is made of.
func clientCode(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	for _, dir := range rooms(t) {
		files = append(files, code(t, dir)...)
	}
	return files
}

// tracked returns the files of the repository, of all its modules, with these
// extensions.
func tracked(t *testing.T, extensions ...string) []string {
	t.Helper()
	var paths []string
	err := fs.WalkDir(os.DirFS("."), ".", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules"):
			return fs.SkipDir
		case !entry.IsDir() && slices.Contains(extensions, gopath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(paths), 10)
	return paths
}

// The packages import each other in one direction, as docs/architecture.md draws it,
// and none of internal/ imports the client.
func TestSource_imports(t *testing.T) {
	t.Parallel()
	arrows := map[string][]string{
		".":            {"attempt", "doc", "endpoint", "money", "orders", "redact"},
		"pricing":      {module, "doc", "endpoint", "money"},
		"internal/doc": {"endpoint", "money", "redact"},
	}
	for _, dir := range rooms(t) {
		imported := map[string]bool{}
		for _, file := range code(t, dir) {
			for _, spec := range file.Imports {
				path, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				if path == module || strings.HasPrefix(path, module+"/") {
					imported[strings.TrimPrefix(path, internal)] = true
				}
			}
		}
		assert.ElementsMatch(t, arrows[dir], slices.Collect(maps.Keys(imported)), "imports of %s", dir)
	}
}

// One function sends requests, and one calls the HTTP library.
func TestSource_oneWayToTheWire(t *testing.T) {
	t.Parallel()
	calls := map[string][]string{}
	for _, file := range clientCode(t) {
		for _, decl := range file.Decls {
			for call := range ast.Preorder(decl) {
				if selector, ok := call.(*ast.SelectorExpr); ok {
					switch name := selector.Sel.Name; name {
					case "RoundTrip", "Do", "Get", "Head", "Post", "PostForm", "DefaultClient", "DefaultTransport", "StandardClient":
						calls[name] = append(calls[name], file.path)
					}
				}
			}
		}
		for _, spec := range file.Imports {
			if strings.Contains(spec.Path.Value, "retryablehttp") {
				calls["the library"] = append(calls["the library"], file.path)
			}
		}
	}
	for name, want := range map[string][]string{
		"the library": {"call.go"},
		"Do":          {"call.go"},
		"RoundTrip":   {"internal/attempt/attempt.go", "internal/attempt/pools.go"}, // of the attempt and its connections
	} {
		assert.Equal(t, want, slices.Compact(calls[name]), name)
	}
	for _, name := range []string{"Head", "PostForm", "DefaultClient", "StandardClient"} {
		assert.Empty(t, calls[name], name)
	}
}
