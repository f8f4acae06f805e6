package gateway_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"os"
	gopath "path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptogw/gateway"
	"github.com/cryptogw/gateway/gatewaytest"
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
	dirs, err := filepath.Glob("internal/*")
	require.NoError(t, err)
	dirs = slices.DeleteFunc(dirs, func(dir string) bool { return dir == "internal/testing" || dir == "internal/testing/documented" })
	require.Greater(t, len(dirs), 5)
	return append(dirs, ".", "pricing")
}

// code returns the files of a directory that are not tests, by path.
func code(t *testing.T, dir string) map[string]*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	files := map[string]*ast.File{}
	for _, path := range paths {
		if !strings.HasSuffix(path, "_test.go") {
			files[path], err = parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
		}
	}
	require.NotEmpty(t, files, dir)
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
		case !entry.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			paths = append(paths, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, len(paths), 10)
	return paths
}

// The documentation of the root names every package for users, of all modules.
func TestSource_packages(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*/*.go")
	require.NoError(t, err)
	dirs := map[string]bool{"cmd/gateway": true}
	for _, path := range files {
		dirs[filepath.Dir(path)] = true
	}
	require.Greater(t, len(dirs), 6)
	comment, _, _ := strings.Cut(fileText(t, "client.go"), "\npackage ")
	for dir := range dirs {
		assert.Contains(t, comment, "//   - ["+module+"/"+filepath.ToSlash(dir)+"] ")
	}
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
	for _, dir := range rooms(t) {
		for path, file := range code(t, dir) {
			for node := range ast.Preorder(file) {
				name := ""
				switch n := node.(type) {
				case *ast.SelectorExpr:
					name = n.Sel.Name
				case *ast.ImportSpec:
					name = gopath.Base(strings.Trim(n.Path.Value, `"`))
				}
				if !slices.Contains(calls[name], path) {
					calls[name] = append(calls[name], path)
				}
			}
		}
	}
	for name, want := range map[string][]string{
		"go-retryablehttp": {"call.go", "options.go"}, // the latter refuses it as a transport
		"Do":               {"call.go"},
		"RoundTrip":        {"internal/attempt/attempt.go", "internal/attempt/exchange.go", "internal/attempt/pools.go"}, // of the attempt and its connections
		"Head":             nil, "PostForm": nil, "DefaultClient": nil, "StandardClient": nil,
	} {
		assert.ElementsMatch(t, want, calls[name], name)
	}
}

// Every Go block of a page is code that is compiled and run: a whole file of the examples, or
// lines of one.
func TestGuides_code(t *testing.T) {
	t.Parallel()
	sources := compiled(t)
	for guide, least := range map[string]int{"README.md": 2, "docs/getting-started.md": 1, "docs/checkout.md": 1, "docs/testing.md": 1} {
		assert.GreaterOrEqual(t, strings.Count(fileText(t, guide), "```go"), least, guide)
	}
	for _, guide := range tracked(t, ".md") {
		text := fileText(t, guide)
		blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(text, -1)
		require.Len(t, blocks, strings.Count(text, "```go"), "%s: a block is not closed, or not at the start of a line", guide)
		for _, block := range blocks {
			code := block[1]
			if strings.Contains("\n"+code, "\npackage ") {
				assert.Contains(t, sources, code, "%s: no example is this", guide)
				continue
			}
			assert.Greater(t, strings.Count(code, "\n"), 2, "%s: too short to be told from other code:\n%s", guide, code)
			isPart := func(source string) bool { return strings.Contains(flushLeft(source), flushLeft(code)) }
			assert.True(t, slices.ContainsFunc(sources, isPart), "%s: no example has:\n%s", guide, code)
		}
	}
}

// A link to a file of the repository leads somewhere, and one to a heading leads to it.
func TestGuides_links(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^):]*?)(?:#([^)]*))?\)`)
	block := regexp.MustCompile("(?ms)^```.*?^```$")
	heading, dropped := regexp.MustCompile(`(?m)^#+ (.*)$`), regexp.MustCompile(`[^\w\- ]`)
	for _, guide := range tracked(t, ".md") {
		for _, to := range link.FindAllStringSubmatch(block.ReplaceAllString(fileText(t, guide), ""), -1) {
			target := guide
			if to[1] != "" {
				target = filepath.Join(filepath.Dir(guide), to[1])
			}
			if _, err := os.Stat(target); !assert.NoError(t, err, guide) || to[2] == "" {
				continue
			}
			var anchors []string
			for _, title := range heading.FindAllStringSubmatch(fileText(t, target), -1) {
				anchors = append(anchors, strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title[1]), ""), " ", "-"))
			}
			assert.Contains(t, anchors, to[2], "%s: of %s", guide, target)
		}
	}
}

// compiled returns the sources that code of a page may come from.
func compiled(t *testing.T) (sources []string) {
	t.Helper()
	paths := []string{"source_test.go"} // which has the recipe
	for _, pattern := range []string{"example_*test.go", "*/example_*test.go"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	paths = append(paths, slices.DeleteFunc(tracked(t, ".go"), func(path string) bool { return !strings.HasPrefix(path, "examples/") })...)
	require.Greater(t, len(paths), 6)
	for _, path := range paths {
		sources = append(sources, fileText(t, path))
	}
	return sources
}

// flushLeft starts with a line end, so that a part begins where a line does, however far indented.
func flushLeft(code string) string {
	return "\n" + regexp.MustCompile(`(?m)^\t+`).ReplaceAllString(code, "")
}

// This is the recipe of the documentation of package gatewaytest, character for
// character.
func TestSynctestRecipe_Withdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gw := gatewaytest.NewMemoryServer()
		defer gw.Close()
		client, err := gateway.New(gw.URL, gw.APIKey,
			gateway.WithHTTPClient(&http.Client{Transport: gw.Transport()}))
		if err != nil {
			t.Fatal(err)
		}

		// The withdrawal completes in a week, and the limit is 100 requests a day.
		const week = 7 * 24 * time.Hour
		id := gw.Withdrawals()[0].WithdrawRequestID
		if err := gw.SetStatusAfter(id, week, "COMPLETED"); err != nil {
			t.Fatal(err)
		}
		gw.SetRateLimit(100, 24*time.Hour)

		begun := time.Now()
		paid, err := client.WaitWithdrawal(t.Context(), id, gateway.WaitOptions{MaxInterval: 10 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(begun); paid.Status != gateway.WithdrawalCompleted || waited < week {
			t.Errorf("%s after %v", paid.Status, waited)
		}
	})
}

// The code in the documentation is compiled and run here.
func TestSynctestRecipe_IsInTheDocumentation(t *testing.T) {
	t.Parallel()
	_, recipe, _ := strings.Cut(fileText(t, "source_test.go"), "\nfunc TestSynctestRecipe_Withdrawal")
	recipe, _, _ = strings.Cut(recipe, "\n}\n")
	var doc strings.Builder
	for line := range strings.Lines(fileText(t, "gatewaytest/doc.go")) {
		doc.WriteString(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "\t"))
	}
	assert.Contains(t, doc.String(), "func TestSynctestRecipe_Withdrawal"+recipe+"\n}\n")
}

func fileText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
